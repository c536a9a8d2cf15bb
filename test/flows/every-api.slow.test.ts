/**
 * The same stories through every API, on both sides. They must leave the same events and records, so no API bypasses
 * the lifecycle. Values that differ by nature (ids, instants) are removed; see `plain`.
 */
import { describe, expect, test } from "vitest";
import { AGENT_APIS, type AgentApi, DELEGATOR_APIS, type DelegatorApi } from "../support/apis.ts";
import { as, startBroker } from "../support/broker.ts";
import { checkHistory, eventsOf } from "../support/history.ts";

interface Story {
  readonly tell: (caller: DelegatorApi, agent: AgentApi) => Promise<string>;
  readonly asksAll?: true;
  readonly ends: string;
  readonly says?: string;
  /** The story's steps, in short. */
  readonly events: readonly string[];
}

const STORIES: Readonly<Record<string, Story>> = {
  "completed, with progress and an artifact": {
    async tell(caller, agent) {
      const id = await caller.delegate("count the words", { ticket: 7, deep: { list: [1, null] } });
      const lease = await agent.lease();
      await agent.progress(lease, "halfway");
      await agent.complete(lease, "forty-two words", { name: "words.txt", text: "all of them" });
      return id;
    },
    ends: "completed",
    says: "forty-two words",
    events: ["queued", "leased", "progress", "DELEGATION_COMPLETE"],
  },
  "asked, answered, completed": {
    async tell(caller, agent) {
      const id = await caller.delegate("greet");
      await agent.ask(await agent.lease(), "input", "French or English?");
      await caller.answer(id, await caller.asked(id), [{ text: "French" }]);
      await agent.complete(await agent.lease(), "Bonjour");
      return id;
    },
    ends: "completed",
    says: "Bonjour",
    events: ["queued", "leased", "interrupted", "answered", "leased", "DELEGATION_COMPLETE"],
  },
  "asked several questions at once": {
    async tell(caller, agent) {
      const id = await caller.delegate("plan");
      await agent.askAll?.(await agent.lease(), ["Where to?", "Shall I book?", "Shall I pay?"]);
      const said = [{ text: "Lyon" }, { decision: "approve" }, { decision: "deny" }] as const;
      await caller.answer(id, await caller.asked(id), said);
      await agent.complete(await agent.lease(), "booked");
      return id;
    },
    asksAll: true,
    ends: "completed",
    says: "booked",
    events: ["queued", "leased", "interrupted", "answered", "leased", "DELEGATION_COMPLETE"],
  },
  approved: {
    async tell(caller, agent) {
      const id = await caller.delegate("deploy");
      await agent.ask(await agent.lease(), "auth", "Log in, then say so");
      await caller.answer(id, await caller.asked(id), [{ decision: "approve" }]);
      await agent.complete(await agent.lease(), "deployed");
      return id;
    },
    ends: "completed",
    says: "deployed",
    events: ["queued", "leased", "interrupted", "answered", "leased", "DELEGATION_COMPLETE"],
  },
  "denied, so rejected": {
    async tell(caller, agent) {
      const id = await caller.delegate("deploy");
      await agent.ask(await agent.lease(), "auth", "Log in, then say so");
      await caller.answer(id, await caller.asked(id), [{ decision: "deny" }]);
      await agent.reject(await agent.lease(), "not without a login");
      return id;
    },
    ends: "rejected",
    events: ["queued", "leased", "interrupted", "answered", "leased", "DELEGATION_FAILED"],
  },
  "sent a follow-up while working": {
    async tell(caller, agent) {
      const id = await caller.delegate("paint");
      const lease = await agent.lease();
      await caller.followUp(id, "in blue");
      expect(await agent.followUps(lease)).toEqual(["in blue"]);
      await agent.complete(lease, "painted blue");
      return id;
    },
    ends: "completed",
    says: "painted blue",
    events: ["queued", "leased", "message", "DELEGATION_COMPLETE"],
  },
  "failed, retried, then completed": {
    async tell(caller, agent) {
      const id = await caller.delegate("fetch");
      await agent.fail(await agent.lease(), "the line is busy", true);
      await agent.complete(await agent.lease(), "fetched");
      return id;
    },
    ends: "completed",
    says: "fetched",
    events: ["queued", "leased", "retrying", "leased", "DELEGATION_COMPLETE"],
  },
  "released, then failed": {
    async tell(caller, agent) {
      const id = await caller.delegate("lift");
      await agent.release(await agent.lease(), "not my shift");
      await agent.fail(await agent.lease(), "too heavy");
      return id;
    },
    ends: "failed",
    events: ["queued", "leased", "released", "leased", "DELEGATION_FAILED"],
  },
  "canceled in the queue": {
    async tell(caller) {
      const id = await caller.delegate("never mind");
      await caller.cancel(id);
      return id;
    },
    ends: "canceled",
    events: ["queued", "DELEGATION_FAILED"],
  },
  "canceled while working": {
    async tell(caller, agent) {
      const id = await caller.delegate("stop me");
      const lease = await agent.lease();
      await agent.progress(lease, "on it");
      await caller.cancel(id, "found it myself");
      expect(await agent.lost(lease)).toBe("canceled");
      return id;
    },
    ends: "canceled",
    events: ["queued", "leased", "progress", "DELEGATION_FAILED"],
  },
};

/** Numbers ids by the member that holds them, so that equal ids stay recognizable as equal. */
const KINDS: Readonly<Record<string, string>> = {
  delegation_id: "delegation",
  context_id: "context",
  interrupt_id: "interrupt",
  request_id: "request",
  messageId: "message",
};
const PREFIXES = [
  ["dlg_", "delegation"],
  ["int_", "interrupt"],
] as const;
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

const answering = (message: object): unknown =>
  "metadata" in message && JSON.stringify(message.metadata).includes("request_id")
    ? message.metadata
    : undefined;

/** The events and the record, without values that differ between two runs. */
function plain(left: unknown): unknown {
  const ids = new Map<string, string>();
  const named = (kind: string, id: string): string => {
    const known = ids.get(`${kind} ${id}`);
    if (known !== undefined) return known;
    const count = [...ids.keys()].filter((key) => key.startsWith(`${kind} `)).length + 1;
    ids.set(`${kind} ${id}`, `<${kind} ${count}>`);
    return `<${kind} ${count}>`;
  };
  const walk = (value: unknown, name: string, within?: unknown): unknown => {
    if (Array.isArray(value)) return value.map((one) => walk(one, name, within));
    if (typeof value === "object" && value !== null) {
      return Object.fromEntries(
        Object.entries(value).flatMap(([key, one]): [string, unknown][] => {
          // A2A messages contain the context that they were sent in.
          if (key === "contextId" && typeof one === "string" && named("context", one) === "<context 1>")
            return [];
          // Each worker chooses its own id; the way of an answer is checked apart.
          if (key === "worker_id" || key === "via") return [];
          // A part of an A2A message says which request it answers; then its message says so, too.
          if (key === "metadata" && name === "parts" && within !== undefined) {
            expect(within).toMatchObject(Object(one));
            return [];
          }
          if (name === "answers") return [[named("request", key), walk(one, key)]];
          return [[key, walk(one, key, key === "parts" ? answering(value) : undefined)]];
        }),
      );
    }
    if (name === "duration_ms") return typeof value;
    if (typeof value !== "string") return value;
    if (INSTANT.test(value)) return "<instant>";
    const kind = KINDS[name];
    if (kind !== undefined) return named(kind, value);
    if (name === "id") {
      const [made = ""] = PREFIXES.filter(([prefix]) => value.startsWith(prefix)).map(([, one]) => one);
      return made === "" ? "<cursor>" : named(made, value);
    }
    return value;
  };
  return walk(left, "");
}

/** How answers come by this API. */
const wayOf = (caller: string): string =>
  ({ A2A: "a2a", MCP: "mcp", "AG-UI": "ag-ui" })[caller.split(" ")[0] ?? ""] ?? "rest";

async function runStory(
  caller: keyof typeof DELEGATOR_APIS,
  agent: keyof typeof AGENT_APIS,
  { tell }: Story,
) {
  const { url } = await startBroker();
  const scout = await as(url, "agent:scout");
  await scout.agent("scout", { backoff: { initial_ms: 1, max_ms: 1, jitter: 0 } });
  const alice = await as(url, "caller:alice");
  const delegating = await DELEGATOR_APIS[caller]?.(url, alice.token);
  const working = await AGENT_APIS[agent]?.(url, scout.token);
  if (!delegating || !working) throw new Error("no such door");
  const id = await tell(delegating, working);
  const end = await delegating.ended(id);
  const events = await eventsOf(alice, id);
  checkHistory(events, "finished");
  const ways = events.flatMap((event) => (event.status === "answered" ? [event.via] : []));
  expect(new Set(ways)).toEqual(new Set(ways.map(() => wayOf(caller))));
  const { body: record } = await alice.get(id);
  expect(record.version).toBe(events.length);
  if (agent === "A2A replies" && record.error !== null && record.reply !== null) {
    // A Task gives the reason of its failure in a Message, which is also its reply; other APIs send only the error.
    expect(record.reply.parts).toEqual([{ text: record.error.message }]);
    record.reply = null;
  }
  return { end, events, record };
}

const PLAIN = "the agent protocol";
type Left = Awaited<ReturnType<typeof runStory>>;

/** The story with REST on both sides, run once. */
const first = new Map<Story, Promise<Left>>();
function firstOf(story: Story): Promise<Left> {
  const known = first.get(story) ?? runStory("REST by the library", PLAIN, story);
  first.set(story, known);
  return known;
}

/** Each API against REST on the other side, and pairs without REST. */
const PAIRS = Object.keys(DELEGATOR_APIS).flatMap((caller) =>
  Object.keys(AGENT_APIS)
    .filter(
      (agent) =>
        caller === "REST by the library" ||
        agent === PLAIN ||
        (caller === "MCP tasks" && agent === "MCP tools") ||
        (caller === "A2A over JSON-RPC" && agent === "A2A replies"),
    )
    .map((agent): [string, string] => [caller, agent]),
);

describe.each(PAIRS)("%s, worked on by %s", (caller, agent) => {
  // The other agent APIs ask one question at a time, and the SDK sends no metadata of parts in this form of A2A.
  const asksAll = agent === PLAIN && caller !== "A2A 0.3 over HTTP+JSON";
  const stories = Object.entries(STORIES).filter(([, story]) => !story.asksAll || asksAll);
  test.each(stories)("%s", async (_name, story) => {
    const expected = await firstOf(story);
    const { end, events, record } = await runStory(caller, agent, story);
    expect(end.state).toBe(story.ends);
    if (story.says !== undefined) expect(end.text).toBe(story.says);
    expect(events.map(({ status, type }) => status ?? type)).toEqual(story.events);
    expect(plain([events, record])).toEqual(plain([expected.events, expected.record]));
  });
});
