/**
 * Prompts for the answer to a delegation's question, one request after another, and again for those that the broker
 * refuses. The answer to an `auth` question is hidden. Limit: an answer is one line, without a comment.
 */
import type { Answer, Answers } from "../../client/answer.ts";
import type { ErrandApiError } from "../../client/errors.ts";
import type { Interrupt } from "../../schema/delegation.ts";
import { votedOtherwise } from "../../schema/voted-answers.ts";
import { usageError } from "../failure.ts";
import type { CliHost } from "../host.ts";
import { isMisfit } from "../open-question.ts";
import { oneLine, painter, write } from "../show/output.ts";
import { requestLines } from "../show/request-lines.ts";
import { votersText } from "../show/votes.ts";
import { LineReader } from "./line-reader.ts";
import {
  type Body,
  decisionHint,
  inputsOf,
  isDoubtful,
  misfits,
  notAChoice,
  type Request,
  refusalReasons,
  toBody,
} from "./typed-answer.ts";
import { agreesToVoid, voidedIn, voidsText } from "./voids.ts";

interface PromptOptions {
  /** Ends the prompt, which then throws the signal's reason. */
  readonly signal?: AbortSignal;
  /** The error for an empty line, which otherwise repeats the prompt. */
  readonly leftOpen?: () => Error;
}

/**
 * Sends the answer to all requests, and returns what `send` does. Throws if the input ends before the answer is
 * accepted.
 */
export async function answerByPrompt<T>(
  host: CliHost,
  interrupt: Interrupt,
  send: (answer: Answer | Answers) => Promise<T>,
  { signal, leftOpen }: PromptOptions = {},
): Promise<T> {
  const { kind, requests } = interrupt;
  const voted = votedOtherwise(interrupt);
  signal?.throwIfAborted();
  const reader = await LineReader.open(host, { isHidden: kind === "auth" });
  const close = () => reader.close();
  signal?.addEventListener("abort", close);
  const bodies = new Map<string, Body>();
  let open: readonly Request[] = requests;
  let refusal: ErrandApiError | undefined;
  try {
    for (;;) {
      for (const request of open) {
        signal?.throwIfAborted();
        const at = requests.indexOf(request);
        await show(
          host,
          request,
          requests.length > 1 ? `${at + 1}/${requests.length} ${oneLine(request.request_id)}` : "",
        );
        const same = voted?.[request.request_id];
        const agreed = same && { body: same, voters: votersText(interrupt) };
        const body = await answerTo(host, kind, request, reader, {
          emptyEnds: leftOpen !== undefined,
          agreed,
        });
        signal?.throwIfAborted();
        if (body === undefined)
          throw leftOpen?.() ?? refusal ?? usageError("no answer was given", "Nothing was sent.");
        bodies.set(request.request_id, body);
      }
      const [first] = bodies.values();
      const answer = requests.length === 1 && first ? first : { answers: Object.fromEntries(bodies) };
      const voided = voidedIn(interrupt, answer);
      if (voided.length > 0 && !(await agreesToVoid(host, reader, voidsText(interrupt, voided)))) {
        open = requests;
        continue;
      }
      try {
        return await Promise.race([send(answer), reader.interrupted]);
      } catch (error) {
        if (!isMisfit(error)) throw error;
        refusal = error;
        open = misfits(requests, error);
        await write(host.stderr, `\n${refusalReasons(error).join("\n")}\n`);
      }
    }
  } finally {
    signal?.removeEventListener("abort", close);
    reader.close();
  }
}

async function show(host: CliHost, request: Request, place: string): Promise<void> {
  const paint = painter(host, "stderr");
  const lines = [...(place === "" ? [] : [paint.dim(place)]), ...requestLines(request, paint)];
  await write(host.stderr, `\n${lines.join("\n")}\n`);
}

const AGREE = "agree";

interface Accepted {
  /** An empty line ends it. */
  readonly emptyEnds: boolean;
  /** What others have approved. */
  readonly agreed: { readonly body: Body; readonly voters: string } | undefined;
}

/** Undefined at the end of the input or, if that may end it, at an empty line. */
async function answerTo(
  host: CliHost,
  kind: Interrupt["kind"],
  request: Request,
  reader: LineReader,
  { emptyEnds, agreed }: Accepted,
): Promise<Body | undefined> {
  let doubtful: string | undefined;
  const same = agreed ? `'${AGREE}' to approve the same as ${agreed.voters}, or ` : "";
  for (;;) {
    const typed = await reader.next(`answer (${same}${inputsOf(kind, request)}): `);
    if (typed === undefined) return undefined;
    const line = typed.trim();
    if (line === "" && emptyEnds) return undefined;
    if (line === "") continue;
    if (agreed && line.toLowerCase() === AGREE) return agreed.body;
    const refused = notAChoice(line, kind, request);
    const mayBeSent = refused === undefined && (!isDoubtful(line, kind, request) || line === doubtful);
    if (mayBeSent) return toBody(line, request);
    // Asked again, so that it is neither sent as text nor taken for a decision by mistake.
    doubtful = line;
    await write(host.stderr, `${refused ?? decisionHint(line)}\n`);
  }
}
