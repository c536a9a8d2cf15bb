/**
 * Prints a delegation's reply: the JSON that its result schema asks for, or its text, its bytes, or the artifact that the reply names as its output. Limit: other
 * parts are only counted.
 */
import type { Part } from "../../schema/a2a.ts";
import type { Delegation } from "../../schema/delegation.ts";
import { joined } from "../artifacts/content.ts";
import type { CliHost } from "../host.ts";
import { artifactText, howToSave } from "./artifact-line.ts";
import { jsonText, note, plainText, print, write } from "./output.ts";

/** The key in a reply's metadata that names the artifact with its output, if that is large or not text. */
export const OUTPUT_ARTIFACT = "output_artifact";

/** How many artifacts a note names. */
const SHOWN = 5;

export async function printReply(host: CliHost, delegation: Delegation): Promise<void> {
  const { id, state, reply, artifacts } = delegation;
  if (state !== "completed") return;
  const named = reply?.metadata?.[OUTPUT_ARTIFACT];
  const output = artifacts.find(({ artifactId }) => artifactId === named);
  const result = resultText(delegation);
  const parts = output?.parts ?? reply?.parts ?? [];
  // Text parts of a message are paragraphs, those of an artifact may be chunks of one text.
  const printable = parts.filter(({ data }) => data === undefined);
  // Bytes would garble a terminal. Of an output, the text between them is of no use.
  const hasBytes = host.isTty.stdout && parts.some(({ raw }) => raw !== undefined);
  const shown = hasBytes ? printable.filter(({ raw }) => raw === undefined && !output) : printable;
  const bytes = joined(shown, output ? "" : "\n");
  // A text ends with a newline; an output artifact is printed unchanged.
  const isText = !output && parts.some(({ text }) => text !== undefined);
  const end = Buffer.from(isText ? "\n" : "");
  const shownBytes = host.isTty.stdout ? plainText(bytes.toString()) : bytes;
  // Nothing but JSON, for programs.
  if (result !== undefined) await print(host, result);
  else if (bytes.length > 0) {
    await write(host.stdout, shownBytes);
    await write(host.stdout, end);
  }
  if (result === undefined && hasBytes) {
    const how = output ? howToSave(id, output, artifacts) : `errand get ${id} --reply > <file>`;
    const what = isText ? "a part of the reply is bytes" : "the reply is not text";
    await note(host, `${what}; '${how}' saves it.`);
  }
  const isShown = ({ text, raw, data }: Part) =>
    result === undefined ? text !== undefined || raw !== undefined : data !== undefined;
  const others = parts.filter((part) => !isShown(part)).length;
  if (others > 0)
    await note(host, `${others} part(s) of the reply are not shown; 'errand get ${id} --json' shows them.`);
  const [first, ...rest] = artifacts.filter((artifact) => artifact !== output);
  if (first !== undefined && rest.length === 0)
    await note(host, `the artifact ${artifactText(first)}: '${howToSave(id, first, artifacts)}' saves it.`);
  else if (first !== undefined) {
    const more = rest.length + 1 > SHOWN ? `, and ${rest.length + 1 - SHOWN} more` : "";
    const names = [first, ...rest].slice(0, SHOWN).map(artifactText).join(", ");
    await note(host, `the artifacts ${names}${more}: 'errand get ${id} --artifacts <folder>' saves them.`);
  }
  const { truncated, kept_bytes, stdout_bytes } = reply?.metadata ?? {};
  if (truncated === true)
    await note(host, `the agent truncated the reply to ${kept_bytes} of ${stdout_bytes} bytes.`);
}

/** On one line; undefined if it asked for none, or has none. */
export function resultText({
  result_schema,
  reply,
}: Pick<Delegation, "result_schema" | "reply">): string | undefined {
  if (result_schema === undefined) return undefined;
  const part = reply?.parts.find((one) => one.data !== undefined);
  return part && jsonText(part.data);
}
