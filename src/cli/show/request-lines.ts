/** A request of a question with all that its reader decides about: its text, the proposed action, options and schema. */
import { textOf } from "../../schema/a2a.ts";
import type { Action, Interrupt } from "../../schema/delegation.ts";
import { oneLine, type Painter } from "./output.ts";
import { optionText } from "./questions.ts";

type Request = Interrupt["requests"][number];

/** The name, and a line for each argument, whole, because it is what an approval allows. */
export const actionLines = ({ name, arguments: given }: Action): string[] => [
  oneLine(name),
  ...Object.entries(given).map(([key, value]) => `  ${oneLine(key)}: ${oneLine(JSON.stringify(value))}`),
];

export const optionLines = (options: readonly unknown[]): string[] =>
  options.map((option, at) => `${at + 1}) ${optionText(option)}`);

export function requestLines(
  { message, options = [], action, schema }: Request,
  { bold, dim }: Painter,
): string[] {
  const text = textOf(message)
    .split("\n")
    .map((line) => bold(oneLine(line)));
  const [name = "", ...given] = action ? actionLines(action) : [];
  const proposed = action ? [`action: ${name}`, ...given] : [];
  const schemas = schema === undefined ? [] : [dim(`JSON schema: ${oneLine(JSON.stringify(schema))}`)];
  return [...text, ...[...proposed, ...optionLines(options)].map((line) => `  ${line}`), ...schemas];
}
