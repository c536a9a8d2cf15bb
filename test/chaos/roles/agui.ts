/**
 * An AG-UI caller: runs, attaches again when its stream breaks, and resumes what asks. Its work goes to the agents that
 * everybody uses. Limit: a run without any event may have delegated or not, and is not repeated.
 */
import { createParser } from "eventsource-parser";
import { z } from "zod";
import type { Ending } from "../recorder.ts";
import { taskOf } from "../setup.ts";
import { type Part, shown, shownSchema } from "./part.ts";

const CALLER = "caller:agui";

const eventSchema = z.looseObject({
  type: z.string(),
  metadata: z
    .looseObject({ errand: z.looseObject({ delegation_id: z.string(), state: z.string().optional() }) })
    .optional(),
  outcome: z.looseObject({ type: z.string() }).optional(),
});

export async function runAgui(part: Part): Promise<void> {
  await Promise.all([calling(part), answering(part)]);
}

async function calling(part: Part): Promise<void> {
  const submits = new Set<Promise<void>>();
  for (let n = 0; !part.quiet && !part.finished; n += 1) {
    const agent = part.random.pick(part.setup.agents);
    const submit = story(part, `agui-${part.setup.life}-${n}`, agent);
    submits.add(submit);
    void submit.finally(() => submits.delete(submit));
    await part.sleep(part.random.between(0, 2_000 / part.setup.rate));
  }
  await Promise.all(submits);
  part.idle();
}

/** Resolves once the work is accepted; then it is followed to its end. */
async function story(part: Part, key: string, agent: string): Promise<void> {
  const thread = `thread-${key}`;
  const messages = [{ id: key, role: "user", content: taskOf(key) }];
  let id: string | undefined;
  let rest: Promise<End> | undefined;
  await part.recorder.call(
    "delegate",
    { as: CALLER, key, target: agent, via: "agui" },
    () =>
      new Promise<Ending>((resolve) => {
        const begun = (found: string) => {
          id = found;
          resolve({ phase: "ok", id });
        };
        rest = read(part, agent, { threadId: thread, messages }, begun);
        void rest.then(({ status }) =>
          resolve(status >= 400 && status < 500 ? { phase: "fail", status } : { phase: "info", status }),
        );
      }),
  );
  const found = id;
  if (found !== undefined) void follow(part, agent, thread, found, rest);
}

async function follow(
  part: Part,
  agent: string,
  threadId: string,
  delegation_id: string,
  first: Promise<End> | undefined,
): Promise<void> {
  let end = await first;
  for (let tries = 0; end?.isOver !== true && tries < 60 && !part.finished; tries += 1) {
    await part.sleep(part.random.between(100, 700));
    const forwardedProps = { errand: { attach: true, delegation_id } };
    end = await read(part, agent, { threadId, messages: [], forwardedProps });
  }
}

interface End {
  /** Of the answer; 0: there was none. */
  readonly status: number;
  /** The delegation is finished. */
  readonly isOver: boolean;
}

let streams = 0;

async function read(
  part: Part,
  agent: string,
  input: object,
  begun: (id: string) => void = () => undefined,
): Promise<End> {
  streams += 1;
  const stream = `${part.setup.proc}/${part.setup.life}/${streams}`;
  let [status, isOver, id] = [0, false, ""];
  const take = (data: unknown) => {
    const { type, metadata, outcome } = eventSchema.parse(data);
    if (type === "RUN_STARTED") {
      id = metadata?.errand.delegation_id ?? "";
      begun(id);
    }
    const state = outcome?.type ?? metadata?.errand.state ?? "";
    isOver ||= /^(?:success|cancelled|failed|rejected)$/.test(state);
    part.recorder.note({ row: "agui", id, stream, type, state });
  };
  // Some streams are left before their end.
  const patience = part.random.chance(0.2) ? part.random.between(50, 1_500) : 20_000;
  const run = async (signal: AbortSignal) => {
    const response = await fetch(`${part.gateway()}/ag-ui/${agent}`, {
      method: "POST",
      headers: { authorization: `Bearer ${part.token(CALLER)}`, "content-type": "application/json" },
      body: JSON.stringify({ runId: stream, ...input }),
      signal,
    });
    status = response.status;
    if (!response.ok || !response.body) return;
    const parser = createParser({ onEvent: ({ data }) => take(JSON.parse(data)) });
    const decoder = new TextDecoder();
    for await (const bytes of response.body) parser.feed(decoder.decode(bytes, { stream: true }));
  };
  await part.within(patience, run).catch(() => undefined);
  return { status, isOver };
}

const askedSchema = shownSchema.extend({ target: z.string(), context_id: z.string() });
const inboxSchema = z.object({ results: z.array(askedSchema), cursor: z.string() });

/** Reads the inbox, as a restarted process must, and resumes what asks. */
async function answering(part: Part): Promise<void> {
  let cursor = "0";
  while (!part.finished) {
    const path = `/v1/results?wait_seconds=2&limit=100&after=${encodeURIComponent(cursor)}`;
    const { phase, body } = await part.send({ as: CALLER, method: "GET", path, holdSeconds: 2 });
    if (phase !== "ok") {
      await part.sleep(part.random.between(100, 500));
      continue;
    }
    const page = inboxSchema.parse(body);
    cursor = page.cursor;
    for (const one of page.results) if (one.interrupt) await resume(part, one);
  }
}

async function resume(
  part: Part,
  { id, target, context_id, interrupt }: z.infer<typeof askedSchema>,
): Promise<void> {
  const interruptId = interrupt?.id ?? "";
  const said = { decision: "approve", text: "yes" };
  const answers = Object.fromEntries((interrupt?.requests ?? []).map(({ request_id }) => [request_id, said]));
  const input = {
    threadId: context_id,
    messages: [],
    resume: [{ interruptId, status: "resolved", payload: { answers } }],
    forwardedProps: { errand: { attach: true, delegation_id: id } },
  };
  const isAsked = async () => {
    const { phase, body } = await part.call(
      "read",
      { id },
      { as: CALLER, method: "GET", path: `/v1/delegations/${id}` },
      shown,
    );
    return phase !== "ok" || shownSchema.parse(body).interrupt?.id === interruptId;
  };
  for (let tries = 0; tries < 100 && !part.finished; tries += 1) {
    // Left as soon as it has begun: then the answer is accepted.
    await new Promise<void>((resolve) => {
      void read(part, target, input, () => resolve()).then(() => resolve());
    });
    if (!(await isAsked())) return;
    await part.sleep(part.random.between(100, 600));
  }
}
