/**
 * Prompts for the answer to a delegation's question, one request after another. The answer to an `auth` question is
 * hidden. Limit: an answer is one line.
 */
import { createInterface, type Interface } from "node:readline";
import { Writable } from "node:stream";
import type { Answer, Answers } from "../../client/answer.ts";
import { textOf } from "../../schema/a2a.ts";
import type { Interrupt } from "../../schema/delegation.ts";
import { decisionSchema } from "../../schema/interrupt.ts";
import { Interrupted, usageError } from "../failure.ts";
import type { CliHost } from "../host.ts";
import { oneLine, painter, write } from "../show/output.ts";
import { optionText } from "../show/questions.ts";

type Request = Interrupt["requests"][number];
type Body = Exclude<Answer, string>;

/** Returns the answer to all requests. Throws if the input ends too early. */
export async function promptForAnswer(
  host: CliHost,
  { kind, requests }: Interrupt,
): Promise<Answer | Answers> {
  const isSecret = kind === "auth";
  const reader = isSecret ? silentReader(host) : createInterface({ input: host.stdin, terminal: false });
  const interrupted = isSecret ? ctrlC(reader) : undefined;
  const lines = reader[Symbol.asyncIterator]();
  const bodies: [string, Body][] = [];
  try {
    for (const [at, request] of requests.entries()) {
      const place = requests.length > 1 ? `${at + 1}/${requests.length} ${oneLine(request.request_id)}` : "";
      await show(host, request, place);
      const answering = answerTo(host, request, lines, isSecret);
      bodies.push([
        request.request_id,
        await (interrupted ? Promise.race([answering, interrupted]) : answering),
      ]);
    }
  } finally {
    reader.close();
  }
  const [first] = bodies;
  return requests.length === 1 && first ? first[1] : { answers: Object.fromEntries(bodies) };
}

/** Reads lines with the terminal in raw mode, which echoes nothing. */
function silentReader({ stdin: input }: CliHost): Interface {
  const output = new Writable({ write: (_chunk, _encoding, done) => done() });
  return createInterface({ input, output, terminal: true, historySize: 0 });
}

/** Rejects at Ctrl-C, which sends no signal in raw mode. */
function ctrlC(reader: Interface): Promise<never> {
  const pressed = new Promise<never>((_, reject) => {
    reader.once("SIGINT", () => reject(new Interrupted("SIGINT")));
  });
  // Ctrl-C may come while nothing awaits the promise.
  pressed.catch(() => undefined);
  return pressed;
}

async function show(host: CliHost, request: Request, place: string): Promise<void> {
  const { bold, dim } = painter(host, "stderr");
  const text = textOf(request.message)
    .split("\n")
    .map((line) => bold(oneLine(line)));
  const options = (request.options ?? []).map((option, at) => `  ${at + 1}) ${optionText(option)}`);
  const schema =
    request.schema === undefined ? [] : [dim(`JSON schema: ${oneLine(JSON.stringify(request.schema))}`)];
  const all = [...(place === "" ? [] : [dim(place)]), ...text, ...options, ...schema];
  await write(host.stderr, `\n${all.join("\n")}\n`);
}

const YES_OR_NO = /^(?:y|yes|yep|ok|okay|approved|n|no|nope|denied)[.!]?$/i;
const isDecision = (option: unknown): boolean => decisionSchema.safeParse(option).success;

async function answerTo(
  host: CliHost,
  request: Request,
  lines: AsyncIterator<string>,
  isSecret: boolean,
): Promise<Body> {
  const { options = [] } = request;
  const numbers = options.length > 0 ? `1 to ${options.length}, or ` : "";
  const prompt = isSecret ? `${numbers}hidden text` : `${numbers || "'approve', 'deny', or "}text`;
  const mayDecide = !isSecret && (options.length === 0 || options.some(isDecision));
  let doubtful: string | undefined;
  for (;;) {
    await write(host.stderr, `answer (${prompt}): `);
    const { done, value } = await lines.next();
    if (isSecret || done) await write(host.stderr, "\n");
    if (done) {
      throw usageError("no answer was given", "Nothing was sent.");
    }
    const line = value.trim();
    if (line === "") continue;
    if (!mayDecide || !YES_OR_NO.test(line) || options.includes(line) || line === doubtful)
      return toBody(line, request);
    // Neither sent as text by mistake, nor taken for a decision that was not meant.
    doubtful = line;
    const hint = `'${line}' is not a decision. Type approve or deny; or '${line}' again, to send it as text.`;
    await write(host.stderr, `${hint}\n`);
  }
}

function toBody(line: string, { options = [], schema }: Request): Body {
  const at = /^\d+$/.test(line) ? Number(line) - 1 : -1;
  const chosen = at in options ? options[at] : line;
  const decision = decisionSchema.safeParse(chosen).data;
  if (decision) return { decision };
  if (typeof chosen !== "string") return { data: chosen };
  if (schema === undefined || chosen !== line) return { text: chosen };
  try {
    const data: unknown = JSON.parse(line);
    return { data };
  } catch {
    return { text: line };
  }
}
