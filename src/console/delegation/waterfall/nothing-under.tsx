import { type Delegation, isTerminal } from "../../../schema/delegation.ts";
import { href } from "../../app/route.ts";
import { mayDelegate } from "../../session/rights.ts";

/** That nothing is under the delegation, and how to change that. */
export function NothingUnder({ delegation: { id, state } }: { readonly delegation: Delegation }) {
  if (isTerminal(state)) return <p class="dim">Nothing was delegated under it.</p>;
  return (
    <p class="dim">
      Nothing is delegated under it yet; what its agent delegates as a part of it appears here.
      {mayDelegate.value && (
        <>
          {" "}
          <a href={href("delegate", { parent: id })}>Delegate a part</a>
        </>
      )}
    </p>
  );
}
