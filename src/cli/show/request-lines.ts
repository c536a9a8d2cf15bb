/** A request of a question with all that its reader decides about: its text, the proposed action, options and schema. */
import { textOf } from "../../schema/a2a.ts";
import type { Interrupt } from "../../schema/delegation.ts";
import { oneLine, type Painter } from "./output.ts";
import { optionText } from "./questions.ts";

export function requestLines(
  { message, options = [], action, schema }: Interrupt["requests"][number],
  { bold, dim }: Painter,
): string[] {
  const text = textOf(message)
    .split("\n")
    .map((line) => bold(oneLine(line)));
  const proposed = action
    ? [
        `  action: ${oneLine(action.name)}`,
        ...Object.entries(action.arguments).map(
          ([name, value]) => `    ${oneLine(name)}: ${oneLine(JSON.stringify(value))}`,
        ),
      ]
    : [];
  const choices = options.map((option, at) => `  ${at + 1}) ${optionText(option)}`);
  const schemas = schema === undefined ? [] : [dim(`JSON schema: ${oneLine(JSON.stringify(schema))}`)];
  return [...text, ...proposed, ...choices, ...schemas];
}
