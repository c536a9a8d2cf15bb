import { adopt } from "../app/adopt.ts";
import { Code } from "./code.tsx";
import { styles } from "./parts.css";
import { Said } from "./said.tsx";
import { visible } from "./visible.ts";

adopt(styles);

/** JSON as a table of names and values where it is flat, else as formatted text. */
export function Json({ value }: { readonly value: unknown }) {
  if (isFlat(value)) {
    return (
      <dl class="members">
        {Object.entries(value).map(([name, member]) => (
          <div key={name}>
            <dt>
              <Said>{visible(name)}</Said>
            </dt>
            <dd>
              <Value value={member} />
            </dd>
          </div>
        ))}
      </dl>
    );
  }
  return <JsonText value={value} />;
}

export function JsonText({ value }: { readonly value: unknown }) {
  return <Code>{visible(JSON.stringify(value, null, 2) ?? "")}</Code>;
}

/** A text as it is, a list as its items, each apart. */
function Value({ value }: { readonly value: unknown }) {
  if (!Array.isArray(value) || value.length === 0)
    return <Said>{visible(typeof value === "string" ? value : JSON.stringify(value))}</Said>;
  return (
    <ul class="items">
      {value.map((item, index) => (
        <li key={index}>
          <Value value={item} />
        </li>
      ))}
    </ul>
  );
}

/** Of an object, and of each list in it. */
const MAX_MEMBERS = 20;

const isScalar = (value: unknown): boolean => typeof value !== "object" || value === null;
const isShortList = (value: unknown): boolean =>
  Array.isArray(value) && value.length <= MAX_MEMBERS && value.every(isScalar);

/** Whether all members are scalars or short lists of them. */
export function isFlat(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const members = Object.values(value);
  return (
    members.length > 0 &&
    members.length <= MAX_MEMBERS &&
    members.every((member) => isScalar(member) || isShortList(member))
  );
}
