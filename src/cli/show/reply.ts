/**
 * A delegation's answer on stdout: the reply's text, its bytes, or the artifact that the reply names as its output.
 * Limit: parts that are neither text nor bytes are only counted.
 */
import type { Delegation } from "../../schema/delegation.ts";
import type { CliHost } from "../host.ts";
import { note, write } from "./output.ts";

type Part = Delegation["artifacts"][number]["parts"][number];

/** The metadata of a reply whose output was too large for a message, or no text, names the artifact so. */
export const OUTPUT_ARTIFACT = "output_artifact";

export async function printReply(host: CliHost, delegation: Delegation): Promise<void> {
  const { id, state, reply, artifacts } = delegation;
  if (state !== "completed") return;
  const named = reply?.metadata?.[OUTPUT_ARTIFACT];
  const output = artifacts.find(({ artifactId }) => artifactId === named);
  const parts = output?.parts ?? reply?.parts ?? [];
  const bytes = joined(parts, output ? "" : "\n");
  // A terminal would make a mess of bytes that are no text.
  const hidden = host.isTty.stdout && parts.some(({ raw }) => raw !== undefined);
  // What was said ends its line, as any command's output does; an output is left as it is.
  const isSaid = !output && parts.some(({ text }) => text !== undefined);
  const end = Buffer.from(isSaid ? "\n" : "");
  if (bytes.length > 0 && !hidden) await write(host.stdout, Buffer.concat([bytes, end]));
  const others = parts.filter((part) => hidden || (part.text === undefined && part.raw === undefined)).length;
  if (others > 0) {
    await note(host, `the reply has ${others} part(s) that are not shown here: 'errand get ${id} --json'.`);
  }
  const rest = artifacts.filter((artifact) => artifact !== output).length;
  if (rest > 0) await note(host, `and ${rest} artifact(s): 'errand get ${id} --json'.`);
  const { truncated, kept_bytes, stdout_bytes } = reply?.metadata ?? {};
  if (truncated === true)
    await note(host, `the reply was cut by its agent: ${kept_bytes} of ${stdout_bytes} bytes are here.`);
}

/** Text parts of a message are paragraphs; those of an artifact may be chunks of one text. */
function joined(parts: readonly Part[], between: string): Buffer {
  const pieces: Buffer[] = [];
  for (const { text, raw } of parts) {
    if (text !== undefined && pieces.length > 0) pieces.push(Buffer.from(between));
    if (text !== undefined) pieces.push(Buffer.from(text));
    else if (raw !== undefined) pieces.push(Buffer.from(raw, "base64"));
  }
  return Buffer.concat(pieces);
}
