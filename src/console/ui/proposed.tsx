import { Json } from "./json.tsx";
import { Said } from "./said.tsx";
import { visible } from "./visible.ts";

/** The action that an agent proposes: its name and its arguments. */
export function Proposed({ name, value }: { readonly name: string; readonly value: unknown }) {
  return (
    <div class="proposal">
      <p class="proposal-name">
        <Said>{visible(name)}</Said>
      </p>
      <Json value={value} />
    </div>
  );
}
