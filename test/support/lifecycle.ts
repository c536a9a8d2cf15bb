/**
 * The writer alone, on a database of its own: moves a delegation without a queue or HTTP. Limit: one agent, `scout`,
 * with an attempt limit of 3.
 */
import { onTestFinished } from "vitest";
import { AgentStore } from "../../src/engine/agents/store.ts";
import type { Command } from "../../src/lifecycle/command.ts";
import { READ_NAMES } from "../../src/lifecycle/fields.ts";
import { failure } from "../../src/lifecycle/numbers.ts";
import type { Outcome } from "../../src/lifecycle/outcome.ts";
import type { MoveName } from "../../src/lifecycle/states.ts";
import { readRecord, type StoredDelegation } from "../../src/lifecycle/stored-delegation.ts";
import { Writer } from "../../src/lifecycle/writer.ts";
import type { Redis } from "../../src/redis/connect.ts";
import { Shards } from "../../src/redis/shards.ts";
import { agentRequestSchema } from "../../src/schema/agent.ts";
import type { State } from "../../src/schema/delegation.ts";
import { freshDb, openRedis } from "./broker.ts";
import { testShards } from "./on-cluster.ts";

/** A record as a plain object with the fields that the gateways read, to compare with. */
/** The first of two approvals. */
const BALLOT = {
  votes_seen: 0,
  needed: 2,
  voter: "approver:ann",
  via: "rest",
  ballot: "b",
  ballot_answers: "{}",
};

export const readFieldsOf = (record: StoredDelegation | null | undefined) =>
  record && { id: record.id, ...Object.fromEntries(READ_NAMES.map((name) => [name, record.get(name)])) };

/** `own`: another Redis than that of the run. */
export async function openLifecycle(spec: unknown = {}, own?: Redis) {
  const redis = own ?? openRedis(await freshDb());
  if (!own) onTestFinished(() => redis.disconnect());
  const clock = { offset_ms: 0 };
  const shards = new Shards(testShards());
  const writer = new Writer({ redis, shards, clock, retentionMs: 3_600_000 });
  const agents = new AgentStore({ redis, shards, clock, retentionMs: 3_600_000 });
  await agents.put("scout", agentRequestSchema.parse(spec));
  const nonces = (function* () {
    for (let n = 1; ; n += 1) yield `n${n}`;
  })();

  const read = (id: string) => readRecord(redis, shards, id);

  /** The move with every parameter that it needs, for the record's current state. */
  async function command(move: MoveName, id: string): Promise<Command> {
    const record = await read(id);
    const holder = { fence: record?.get("fence") ?? 1 };
    const interrupt = '{"id":"int_1","kind":"input","requests":[]}';
    const error = '{"code":"x"}';
    const params: Partial<Record<MoveName, Command["params"]>> = {
      submit: {
        target: "scout",
        delegator: "caller:alice",
        context_id: "ctx",
        priority: 5,
        ttl_ms: 604_800_000,
      },
      lease: { ticket: record?.get("ticket") ?? 1, nonce: nonces.next().value, worker_id: "w" },
      heartbeat: holder,
      progress: holder,
      artifact: holder,
      interrupt: { ...holder, to: "input_required", interrupt_id: "int_1", interrupt },
      hold: { ...holder, to: "input_required", interrupt_id: "int_1", interrupt },
      park_question: holder,
      ask_people: { interrupt_id: "int_1" },
      hand_over: { interrupt_id: "int_1", answer_hash: "h", answers: "{}" },
      vote: { interrupt_id: "int_1", answer_hash: "h", answers: "{}", ...BALLOT },
      use: { ...holder, interrupt_id: "int_1", request_id: "r", use_key: "k" },
      answer: { interrupt_id: "int_1", answer_hash: "h", answers: "{}" },
      await: {
        ...holder,
        children: ["dlg_0_child", "dlg_0_other"],
        ended: ["", ""],
        needed: 2,
        awaits: "[]",
        shown: "[]",
        wait: "s",
      },
      child_ended: { child_id: "dlg_0_child", child_state: "completed" },
      spend: { child_id: "dlg_0_child", spent: "1 0 1" },
      deny_budget: { interrupt_id: "int_1", answer_hash: "h", answers: "{}" },
      follow_up: { expected: record?.get("fence") ?? 0 },
      resume: { child_id: "dlg_0_child", child_state: "completed" },
      message: { message_id: "h", message_hash: "h" },
      adopt: { child_id: "dlg_0_child" },
      cascade: { cascade: "operator" },
      push: { push: "p", push_config: "{}" },
      redrive: { new_id: "dlg_0_new" },
      release: holder,
      reclaim: holder,
      unconfirm: holder,
      give_up: holder,
      retry: { ...holder, reply_hash: "h" },
      complete: { ...holder, reply_hash: "h" },
      reject: { ...holder, reply_hash: "h" },
      fail: { ...holder, reply_hash: "h" },
      reticket: { ticket: record?.get("ticket") ?? 1 },
    };
    const failing = move === "fail" || move === "reject" || move === "cancel";
    return {
      move,
      id,
      params: params[move] ?? {},
      ...(failing && { event: { error }, fields: { error } }),
      ...(move === "submit" && { fields: { message: '{"messageId":"m","role":"ROLE_USER","parts":[]}' } }),
      ...(move === "message" && { history: ['{"messageId":"h"}'] }),
    };
  }

  async function move(name: MoveName | "due", id: string, params: Command["params"] = {}): Promise<Outcome> {
    const base: Command = name === "due" ? { move: "due", id } : await command(name, id);
    const { outcome } = await writer.move({ ...base, params: { ...base.params, ...params } });
    if (outcome.kind !== "unanswered") return outcome;
    const { code, interrupt_id: of_question, given } = outcome;
    const error = JSON.stringify(failure(code));
    return (await writer.move({ move: "due", id, params: { error, code, of_question, given } })).outcome;
  }

  const PATHS: Record<State, readonly MoveName[]> = {
    submitted: [],
    working: ["lease"],
    input_required: ["lease", "interrupt"],
    auth_required: ["lease", "interrupt"],
    awaiting_children: ["lease", "await", "follow_up"],
    completed: ["lease", "complete"],
    failed: ["lease", "fail"],
    canceled: ["cancel"],
    rejected: ["lease", "reject"],
  };

  /** Creates a delegation in this state; `isHeld`: a question is held. */
  async function inState(
    state: State,
    submit: Command["params"] = {},
    { isHeld = false }: { readonly isHeld?: boolean } = {},
  ): Promise<string> {
    const id = shards.newDelegationId("scout");
    await move("submit", id, submit);
    for (const step of PATHS[state]) {
      if (step === "interrupt") await move(isHeld ? "hold" : "interrupt", id, { to: state });
      else await move(step, id);
    }
    return id;
  }

  return { redis, shards, clock, writer, agents, read, command, move, inState };
}

export type TestLifecycle = Awaited<ReturnType<typeof openLifecycle>>;
