import { Code } from "./code.tsx";
import { Said } from "./said.tsx";

/** JSON as a table of names and values where it is flat, else as formatted text. */
export function Json({ value }: { readonly value: unknown }) {
  if (isFlat(value)) {
    return (
      <dl class="members">
        {Object.entries(value).map(([name, member]) => (
          <div key={name}>
            <dt>
              <Said>{name}</Said>
            </dt>
            <dd>
              <Said>{typeof member === "string" ? member : JSON.stringify(member)}</Said>
            </dd>
          </div>
        ))}
      </dl>
    );
  }
  return <JsonText value={value} />;
}

export function JsonText({ value }: { readonly value: unknown }) {
  return <Code>{JSON.stringify(value, null, 2)}</Code>;
}

const MAX_MEMBERS = 20;

function isFlat(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const members = Object.values(value);
  return (
    members.length > 0 &&
    members.length <= MAX_MEMBERS &&
    members.every((member) => typeof member !== "object" || member === null)
  );
}
