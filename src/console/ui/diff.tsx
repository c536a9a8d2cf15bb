import { adopt } from "../app/adopt.ts";
import { Code } from "./code.tsx";
import { styles } from "./parts.css";

adopt(styles);

/** Beyond this, the elements of the lines would hold up the page. */
const MAX_LINES = 5_000;

/** A unified diff with its lines marked by sign and colour, unless there are very many. */
export function DiffLines({ text, kind = "" }: { readonly text: string; readonly kind?: string }) {
  const lines = text.replace(/\n$/, "").split("\n");
  if (lines.length > MAX_LINES) return <Code kind={kind}>{text}</Code>;
  return (
    <Code kind={`diff ${kind}`}>
      {lines.map((line, index) => (
        <span key={index} class={kindOf(line)}>
          {line}
          {"\n"}
        </span>
      ))}
    </Code>
  );
}

function kindOf(line: string): string {
  if (line.startsWith("+") && !line.startsWith("+++")) return "added";
  if (line.startsWith("-") && !line.startsWith("---")) return "removed";
  return line.startsWith("@@") ? "place" : "";
}
