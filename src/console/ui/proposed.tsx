import { Json } from "./json.tsx";
import { Said } from "./said.tsx";

/** The action that an agent proposes: its name and its arguments. */
export function Proposed({ name, value }: { readonly name: string; readonly value: unknown }) {
  return (
    <div class="proposal">
      <h3>
        <Said>{name}</Said>
      </h3>
      <Json value={value} />
    </div>
  );
}
