/**
 * The end of a run: removes all faults, waits for all work to end, and reads everything through every gateway and
 * from Redis.
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { MOVES } from "../../src/lifecycle/states.ts";
import { isTerminal, stateSchema } from "../../src/schema/delegation.ts";
import { until } from "../support/until.ts";
import { toFacts } from "./check/facts.ts";
import { ticket } from "./check/finals.ts";
import { untold } from "./check/notices.ts";
import { undelivered } from "./check/outside.ts";
import { missed } from "./check/subscribers.ts";
import { dump, unmoved } from "./dump.ts";
import { CLOCK_FAULT_MS } from "./faults.ts";
import {
  type AskedQuestion,
  assemble,
  type Dump,
  emptyHistory,
  type FinalRead,
  type FinalRule,
  type History,
  readRows,
  type ShownAnswer,
  type StoredEvent,
} from "./history.ts";
import { hashOf } from "./roles/subscriber.ts";
import type { Row } from "./rows.ts";
import { keyOf, type Role, SHELF } from "./setup.ts";
import type { Stage } from "./stage.ts";

const SUBMITTERS: readonly Role[] = ["delegator", "a2a", "agui", "mcp"];
const AT_ONCE = 24;
/** At five a second: as long as a gateway may take to return. */
const READ_TRIES = 300;

export async function endRun(stage: Stage, say: (line: string) => void): Promise<History> {
  say("healing");
  // A gateway that does not return is a finding; the others are still read.
  await stage.heal().catch((error: unknown) => {
    stage.troubles.push(error instanceof Error ? error.message : String(error));
  });
  const quietMs = stage.options.patienceSeconds * 1000;
  await submitted(stage, quietMs);
  say("waiting until all work but the shelf's is done");
  await waitUntil(
    stage,
    ({ records }) => records.every((one) => one.target === SHELF || isOver(one.state)),
    quietMs,
  );
  const waiting = await ticketed(stage);
  say("waiting until the shelf is empty, and every sum has reached the tree above it");
  for (const { child } of stage.workers) child.send("shelf");
  await waitUntil(
    stage,
    ({ records }) => records.every(({ state, spends }) => isOver(state) && spends !== true),
    quietMs,
  );
  const last = await dump(stage);
  say(`reading ${last.records.length} delegations through ${stage.gateways.length} gateways`);
  const stored = await readEvents(stage, last);
  const finals = await readFinals(stage, last);
  const rules = await readRules(stage);
  say("waiting until subscribers and receivers have everything");
  await caughtUp(stage, stored, last);
  for (const { child } of stage.workers) {
    child.dismiss();
    child.send("finish");
  }
  await until(() => stage.workers.every(({ child }) => child.isGone())).catch(() => undefined);
  const recorded = assemble(rowsOf(stage));
  return {
    ...recorded,
    ...{ fsync: stage.options.fsync, stored, finals, rules, waiting, dump: last },
    logs: logsOf(stage),
    secrets: [...stage.secrets, ...new Set(recorded.calls.flatMap(({ link }) => link ?? []))],
    deaths: [...stage.gateways.flatMap(({ child }) => child.deaths), ...stage.troubles],
  };
}

/** Waits until every submit in progress was answered; work accepted later would be missed. */
async function submitted(stage: Stage, timeoutMs: number): Promise<void> {
  const end = performance.now() + timeoutMs;
  const submitters = stage.workers.filter(({ role }) => SUBMITTERS.includes(role));
  while (!submitters.every(({ child }) => child.isIdle) && performance.now() < end) {
    // Repeated, because a process that was just killed did not receive it.
    for (const { child } of stage.workers) child.send("quiet");
    await stage.pause(200);
  }
}

const isOver = (state: string): boolean => isTerminal(stateSchema.parse(state));

/** Waits for the condition, or until nothing has moved for this long: then the checker reports what is missing. */
async function waitUntil(stage: Stage, holds: (dump: Dump) => boolean, quietMs: number): Promise<void> {
  let moves = -1;
  let end = 0;
  for (;;) {
    const now = await dump(stage);
    if (holds(now)) return;
    const made = now.records.reduce((sum, { version }) => sum + version, 0);
    if (made > moves) end = performance.now() + quietMs;
    else if (performance.now() > end) return;
    moves = made;
    await stage.pause(300);
  }
}

async function ticketed(stage: Stage): Promise<Dump> {
  const end = performance.now() + stage.options.patienceSeconds * 200;
  for (;;) {
    const waiting = unmoved(await dump(stage), await dump(stage));
    const facts = toFacts({ ...emptyHistory(), waiting });
    if (ticket(facts).length === 0 || performance.now() > end) return waiting;
    await stage.pause(300);
  }
}

async function inTurns<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const rest = items.values();
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (const item of rest) await work(item);
    }),
  );
}

async function get(stage: Stage, url: string): Promise<{ status: number; text: string }> {
  for (let tries = 1; ; tries += 1) {
    try {
      const response = await fetch(url, {
        headers: { authorization: `Bearer ${stage.operatorToken}`, accept: "application/json" },
        signal: AbortSignal.timeout(10_000),
      });
      const text = await response.text();
      if (response.status < 500 || tries === READ_TRIES) return { status: response.status, text };
    } catch (error) {
      if (tries === READ_TRIES) throw error;
    }
    await stage.pause(200);
  }
}

const requestSchema = z.looseObject({
  request_id: z.string(),
  action: z.looseObject({ name: z.string(), arguments: z.record(z.string(), z.unknown()) }).optional(),
});
const interruptSchema = z.looseObject({
  id: z.string(),
  kind: z.string(),
  requests: z.array(requestSchema),
});
const answerShape = {
  interrupt: interruptSchema.optional(),
  interrupt_id: z.string().optional(),
  by: z.string().default(""),
  via: z.string().default(""),
  answers: z
    .record(z.string(), z.looseObject({ decision: z.string().optional(), rule: z.string().optional() }))
    .default({}),
  changes: z.record(z.string(), z.unknown()).default({}),
  votes: z.array(z.looseObject({ by: z.string() })).optional(),
  voided: z.array(z.string()).optional(),
};

const pageSchema = z.object({
  events: z.array(
    z.looseObject({
      ...answerShape,
      id: z.string(),
      type: z.string(),
      seq: z.number().optional(),
      state: z.string().default(""),
      status: z.string().optional(),
      at: z.string(),
      attempt: z.number().optional(),
      expires_at: z.string().optional(),
    }),
  ),
  cursor: z.string(),
});

async function readEvents(stage: Stage, { records }: Dump): Promise<Map<string, StoredEvent[]>> {
  const all = new Map<string, StoredEvent[]>();
  let turn = 0;
  await inTurns(records, async ({ id }) => {
    turn += 1;
    const { url } = stage.gateways[turn % stage.gateways.length] ?? { url: "" };
    const events: StoredEvent[] = [];
    for (let after = "0"; ; ) {
      const { status, text } = await get(
        stage,
        `${url}/v1/delegations/${id}/events?limit=1000&after=${after}`,
      );
      if (status !== 200) break;
      const page = pageSchema.parse(JSON.parse(text));
      for (const event of page.events) {
        // A RESET is not an event of the delegation; the events that it hides count as missing.
        if (event.seq === undefined) continue;
        const { seq, type, state, status: what = "", attempt, expires_at } = event;
        const expires = expires_at === undefined ? undefined : Date.parse(expires_at);
        const at = Date.parse(event.at);
        const hash = hashOf(event);
        const said = { asked: askedBy(event), answer: answerBy(event) };
        events.push({ seq, type, state, status: what, hash, at, attempt, expires, ...said });
      }
      if (page.events.length === 0) break;
      after = page.cursor;
    }
    all.set(id, events);
  });
  return all;
}

type PageEvent = z.infer<typeof pageSchema>["events"][number];

function askedBy({ interrupt, status }: PageEvent): AskedQuestion | undefined {
  if (!interrupt || status !== MOVES.interrupt.status) return undefined;
  const actions = interrupt.requests.flatMap(({ request_id: request, action }) =>
    action ? [{ request, name: action.name, arguments: action.arguments }] : [],
  );
  return { id: interrupt.id, kind: interrupt.kind, actions };
}

function answerBy({
  status,
  interrupt_id: id,
  by,
  via,
  answers,
  changes,
  votes,
  voided,
}: PageEvent): ShownAnswer | undefined {
  if (id === undefined || (status !== MOVES.answer.status && status !== MOVES.vote.status)) return undefined;
  const requests = Object.entries(answers).map(([request, { decision, rule }]) => {
    const changed = changes[request];
    return { request, decision, rule, changes: changed === undefined ? "" : JSON.stringify(changed) };
  });
  return { id, by, via, requests, votes: votes?.map((vote) => vote.by), voided };
}

const amountsSchema = z.looseObject({ tokens: z.number().optional(), attempts: z.number().optional() });
const finalSchema = z.looseObject({
  state: z.string(),
  version: z.number(),
  message: z.looseObject({ parts: z.array(z.looseObject({ text: z.string().optional() })) }),
  reply: z
    .looseObject({ parts: z.array(z.looseObject({ text: z.string().optional() })).optional() })
    .nullable(),
  error: z.looseObject({ code: z.string() }).nullable(),
  usage: z.looseObject({ total: z.looseObject({ input_tokens: z.number().optional() }) }).optional(),
  budget: z
    .looseObject({
      limit: amountsSchema.optional(),
      used: z.looseObject({ tokens: z.number(), attempts: z.number() }),
      exceeded: z.literal(true).optional(),
    })
    .optional(),
});

async function readFinals(stage: Stage, { records }: Dump): Promise<FinalRead[]> {
  const reads: FinalRead[] = [];
  await inTurns(
    records.flatMap(({ id }) => stage.gateways.map((gateway) => ({ id, ...gateway }))),
    async ({ id, url, name: gateway }) => {
      const { status, text } = await get(stage, `${url}/v1/delegations/${id}`);
      const none = {
        gateway,
        id,
        found: false,
        state: "",
        version: 0,
        key: "",
        reply: "",
        hash: String(status),
      };
      if (status !== 200) {
        reads.push(none);
        return;
      }
      const { state, version, message, reply, error, usage, budget } = finalSchema.parse(JSON.parse(text));
      const hash = createHash("sha1").update(text).digest("base64url");
      const said = reply?.parts?.[0]?.text ?? "";
      reads.push({
        ...none,
        found: true,
        state,
        version,
        key: keyOf(message.parts[0]?.text ?? ""),
        reply: said,
        hash,
        error: error?.code,
        tokens: usage?.total.input_tokens,
        budget,
      });
    },
  );
  return reads;
}

const instantMs = z.string().transform((text) => Date.parse(text));
const rulesSchema = z.object({
  rules: z.array(
    z.looseObject({
      ...{ id: z.string(), by: z.string(), agent: z.string(), action: z.string(), decision: z.string() },
      arguments: z.array(
        z.looseObject({
          name: z.string().optional(),
          minimum: z.number().optional(),
          maximum: z.number().optional(),
        }),
      ),
      ...{ only_these_arguments: z.boolean(), uses: z.number(), max_uses: z.number().nullable() },
      ...{ created_at: instantMs, expires_at: instantMs.nullable(), revoked_at: instantMs.nullable() },
    }),
  ),
  next_cursor: z.string().nullable(),
});

async function readRules(stage: Stage): Promise<FinalRule[]> {
  const all: FinalRule[] = [];
  const [{ url } = { url: "" }] = stage.gateways;
  for (let cursor = ""; ; ) {
    const after = cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`;
    const { status, text } = await get(stage, `${url}/v1/rules?limit=100${after}`);
    if (status !== 200) throw new Error(`the rules were answered ${status} ${text}`);
    const page = rulesSchema.parse(JSON.parse(text));
    for (const { created_at: created, expires_at: expires, revoked_at: revoked, ...rule } of page.rules)
      all.push({ ...rule, created, expires, revoked });
    if (page.next_cursor === null) return all;
    cursor = page.next_cursor;
  }
}

function* rowsOf(stage: Stage): Generator<Row> {
  const directory = join(stage.directory, "history");
  for (const name of readdirSync(directory)) yield* readRows(join(directory, name));
}

/** Waits until the rules about subscribers find nothing, or a time limit. */
async function caughtUp(stage: Stage, stored: History["stored"], last: Dump): Promise<void> {
  const begin = performance.now();
  for (;;) {
    const recorded = assemble(rowsOf(stage));
    const facts = toFacts({ ...emptyHistory(), ...recorded, stored, dump: last });
    // BullMQ delays the next try of a call by the clock of the gateway that made the last one.
    const isSkewed = recorded.faults.some(({ fault }) => fault === "clock-ahead");
    const end = begin + stage.options.patienceSeconds * 1_000 + (isSkewed ? CLOCK_FAULT_MS : 0);
    const missing = missed(facts).length + undelivered(facts).length + untold(facts).length;
    if (missing === 0 || performance.now() > end) return;
    await stage.pause(500);
  }
}

function logsOf(stage: Stage): History["logs"] {
  const directory = join(stage.directory, "logs");
  return readdirSync(directory)
    .filter((name) => name.startsWith("gateway"))
    .flatMap((name) =>
      readFileSync(join(directory, name), "utf8")
        .split("\n")
        .map((line) => ({ source: name, line })),
    );
}
