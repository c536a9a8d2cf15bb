import { Json } from "./json.tsx";
import { Said } from "./said.tsx";

/** The action that an agent proposes: its name and its arguments. */
export function Proposed({ name, value }: { readonly name: string; readonly value: unknown }) {
  return (
    <div class="proposal">
      <p class="proposal-name">
        <Said>{name}</Said>
      </p>
      <Json value={value} />
    </div>
  );
}
