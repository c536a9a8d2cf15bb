import { adopt } from "../app/adopt.ts";
import { Code } from "./code.tsx";
import { isFlat } from "./flat.ts";
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
