import { Code } from "./code.tsx";

/** A unified diff with its lines marked by sign and colour. */
export function Diff({ text }: { readonly text: string }) {
  return (
    <Code kind="diff">
      {text.split("\n").map((line, index) => (
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
