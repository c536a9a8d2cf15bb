/**
 * Prompts for the answer to a delegation's question, one request after another, and again for those that the broker
 * refuses. The answer to an `auth` question is hidden. Limit: an answer is one line, without a comment.
 */
import { createInterface, type Interface } from "node:readline";
import { Writable } from "node:stream";
import type { Answer, Answers } from "../../client/answer.ts";
import type { ErrandApiError } from "../../client/errors.ts";
import { textOf } from "../../schema/a2a.ts";
import { isDecidable, offeredDecisions } from "../../schema/answer-rules.ts";
import type { Interrupt } from "../../schema/delegation.ts";
import { decisionSchema } from "../../schema/interrupt.ts";
import { isObject } from "../../schema/json-schema/keywords.ts";
import { shownName } from "../../schema/text.ts";
import { Interrupted, usageError } from "../failure.ts";
import type { CliHost } from "../host.ts";
import { isMisfit } from "../open-question.ts";
import { issuesOf, oneLine, painter, write } from "../show/output.ts";
import { optionText } from "../show/questions.ts";

type Request = Interrupt["requests"][number];
type Body = Exclude<Answer, string>;

/**
 * Sends the answer to all requests, and returns what `send` does. Throws if the input ends before the answer is
 * accepted.
 */
export async function answerByPrompt<T>(
  host: CliHost,
  { kind, requests }: Interrupt,
  send: (answer: Answer | Answers) => Promise<T>,
): Promise<T> {
  const reader =
    kind === "auth" ? silentReader(host) : createInterface({ input: host.stdin, terminal: false });
  const interrupted = kind === "auth" ? ctrlC(reader) : undefined;
  const lines = reader[Symbol.asyncIterator]();
  const bodies = new Map<string, Body>();
  let open: readonly Request[] = requests;
  let refusal: ErrandApiError | undefined;
  try {
    for (;;) {
      for (const request of open) {
        const at = requests.indexOf(request);
        await show(
          host,
          request,
          requests.length > 1 ? `${at + 1}/${requests.length} ${oneLine(request.request_id)}` : "",
        );
        const answering = answerTo(host, kind, request, lines);
        const body = await (interrupted ? Promise.race([answering, interrupted]) : answering);
        if (body === undefined) throw refusal ?? usageError("no answer was given", "Nothing was sent.");
        bodies.set(request.request_id, body);
      }
      const [first] = bodies.values();
      const answer = requests.length === 1 && first ? first : { answers: Object.fromEntries(bodies) };
      try {
        return await send(answer);
      } catch (error) {
        if (!isMisfit(error)) throw error;
        refusal = error;
        open = misfits(requests, error);
        await write(host.stderr, `\n${reasons(error)}\n`);
      }
    }
  } finally {
    reader.close();
  }
}

/** The requests whose answers were refused. */
function misfits(requests: readonly Request[], error: ErrandApiError): readonly Request[] {
  const paths = issuesOf(error).map(({ path }) => path);
  const found = requests.filter(({ request_id }) => {
    const under = oneLine(`answers.${shownName(request_id)}`);
    return paths.some((path) => path === under || path.startsWith(`${under}.`));
  });
  return found.length > 0 ? found : requests;
}

const MAX_REASONS = 5;
const reasons = (error: ErrandApiError): string =>
  issuesOf(error)
    .slice(0, MAX_REASONS)
    .map(({ path, reason }) => `not accepted: ${path}: ${reason}`)
    .join("\n");

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
  const { action, schema } = request;
  const proposed = action
    ? [
        `  action: ${oneLine(action.name)}`,
        ...Object.entries(action.arguments).map(
          ([name, value]) => `    ${oneLine(name)}: ${oneLine(JSON.stringify(value))}`,
        ),
      ]
    : [];
  const schemas = schema === undefined ? [] : [dim(`JSON schema: ${oneLine(JSON.stringify(schema))}`)];
  const all = [...(place === "" ? [] : [dim(place)]), ...text, ...proposed, ...options, ...schemas];
  await write(host.stderr, `\n${all.join("\n")}\n`);
}

const YES_OR_NO = /^(?:y|yes|yep|ok|okay|approved|n|no|nope|denied)[.!]?$/i;

/** What may be typed, as part of the prompt. */
function inputsOf(kind: Interrupt["kind"], request: Request): string {
  const { options = [], schema, action, edit } = request;
  const hidden = kind === "auth" ? "hidden " : "";
  const inputs: string[] = [];
  if (options.length > 0) inputs.push(`1 to ${options.length}`);
  else if (kind === "input" && isDecidable(kind, request)) inputs.push("'approve', 'deny'");
  if (edit === true) inputs.push(`other arguments, as ${hidden}JSON, to approve those`);
  if (schema !== undefined && action === undefined) inputs.push(`${hidden}JSON`);
  if (schema === undefined && action === undefined && options.length === 0) inputs.push(`${hidden}text`);
  return inputs.length === 0 ? "approve or deny" : inputs.join(", or ");
}

/** Undefined at the end of the input. */
async function answerTo(
  host: CliHost,
  kind: Interrupt["kind"],
  request: Request,
  lines: AsyncIterator<string>,
): Promise<Body | undefined> {
  const { options = [] } = request;
  const isSecret = kind === "auth";
  const mayDecide = !isSecret && isDecidable(kind, request) && offeredDecisions(kind, request).length > 0;
  let doubtful: string | undefined;
  for (;;) {
    await write(host.stderr, `answer (${inputsOf(kind, request)}): `);
    const { done, value } = await lines.next();
    if (isSecret || done) await write(host.stderr, "\n");
    if (done) return undefined;
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

function toBody(line: string, { options = [], schema, action, edit }: Request): Body {
  const at = /^\d+$/.test(line) ? Number(line) - 1 : -1;
  const chosen = at in options ? options[at] : line;
  const decision = decisionSchema.safeParse(chosen).data;
  if (decision) return { decision };
  if (typeof chosen !== "string") return { data: chosen };
  if (chosen !== line || options.includes(line)) return { text: chosen };
  if (action) {
    const data = edit === true ? parsed(line) : undefined;
    return isObject(data) ? { decision: "approve", data } : { text: line };
  }
  if (schema === undefined) return { text: line };
  const data = parsed(line);
  return data === undefined ? { data: line } : { data };
}

/** Undefined for a line that is not JSON. */
function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
