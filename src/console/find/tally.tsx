/** How many of what was found failed or ask somebody, with links to those: they may be far down the list. */
import type { Delegation, State } from "../../schema/delegation.ts";
import { hrefWith, route } from "../app/route.ts";
import { StateMark } from "../ui/state-mark.tsx";
import { count, PHASES } from "../ui/words.ts";

/** After the number, for one and for more. */
const NAMED = [
  ["failed", "failed", "failed"],
  ["rejected", "rejected", "rejected"],
  ["input_required", "asks", "ask"],
  ["auth_required", "asks for access", "ask for access"],
] as const satisfies readonly (readonly [State, string, string])[];

export function Tally({ found }: { readonly found: readonly Delegation[] }) {
  const chosen = route.value.params.get("state");
  return (
    <p class="find-tally">
      {NAMED.map(([state, one, many]) => {
        const { length } = found.filter((delegation) => delegation.state === state);
        if (length === 0 || state === chosen) return null;
        return (
          <a key={state} class={`state ${PHASES[state]}`} href={hrefWith({ state })}>
            <StateMark phase={PHASES[state]} /> {count(length, one, many)}
          </a>
        );
      })}
    </p>
  );
}
