/**
 * Bodies in A2A's form, in every version and envelope: each is a reply, progress, a question or a cancel.
 * a2a-reply-address.test.ts has the ids, a2a-reply-malformed.test.ts the refused bodies.
 */
import { Message, Role, TaskState } from "@a2a-js/sdk";
import { describe, expect, test } from "vitest";
import { parseA2aReply } from "../../../src/doors/rest/a2a-reply.ts";
import { A2A_STATES, type A2aStateName } from "../../../src/schema/a2a-task.ts";
import {
  ARTIFACT,
  artifact,
  DELEGATION,
  issuesOf,
  type Json,
  LEASE,
  part,
  refused,
  SAID,
  STATES,
  said,
  stateOf,
  task,
  written,
} from "./a2a-bodies.ts";

const MEANT = STATES.filter((name) => A2A_STATES[name].means !== null);

function expected(name: A2aStateName, artifacts: { artifacts?: unknown[] }): unknown {
  switch (A2A_STATES[name].state) {
    case "submitted":
    case "working":
      return { kind: "progress", message: SAID, ...artifacts };
    case "completed":
      return { kind: "reply", state: "completed", message: SAID, ...artifacts };
    case "rejected":
      return { kind: "reply", state: "rejected", message: SAID, ...artifacts };
    case "failed": {
      const error = { code: "agent_error", message: "words", retryable: false };
      return { kind: "reply", state: "failed", message: SAID, error, ...artifacts };
    }
    case "input_required":
      return { kind: "interrupt", interrupt: "input", message: SAID, ...artifacts };
    case "auth_required":
      return { kind: "interrupt", interrupt: "auth", message: SAID, ...artifacts };
    case "canceled":
      return { kind: "canceled", message: SAID };
    case null:
      return null;
  }
}

describe.each(MEANT)("a task in %s", (name) => {
  const state = stateOf(name);
  const bodies = written({ $case: "task", value: task(state) });

  test.each(Object.keys(bodies))("%s", (form) => {
    const reply = parseA2aReply(bodies[form]);
    expect(reply).toEqual({ address: null, action: expected(name, { artifacts: [ARTIFACT] }) });
  });

  const { id: taskId, contextId, status, metadata } = task(state);
  const events = written({ $case: "statusUpdate", value: { taskId, contextId, status, metadata } });
  test.each(Object.keys(events))("as a status event, %s", (form) => {
    expect(parseA2aReply(events[form])).toEqual({ address: null, action: expected(name, {}) });
  });

  test("by the number of its state", () => {
    const body = { id: "t-1", status: { state: A2A_STATES[name].number, message: SAID } };
    expect(parseA2aReply(body).action).toEqual(expected(name, {}));
  });

  test("that has only a state", () => {
    for (const body of [
      { status: { state: name } },
      { task: { id: "t", status: { state: name, message: null }, artifacts: null, history: null } },
      { kind: "task", status: { state: A2A_STATES[name].v03 }, artifacts: [], history: [] },
    ]) {
      const { message: _message, error: _error, ...rest } = expected(name, {}) as Json;
      expect(parseA2aReply(body).action).toEqual(rest);
    }
  });
});

describe("an unspecified state is never a reply", () => {
  const states: unknown[] = [
    undefined,
    null,
    0,
    -1,
    9,
    3.5,
    "",
    "unknown",
    "UNRECOGNIZED",
    "done",
    "TASK_STATE_UNSPECIFIED",
    "TASK_STATE_PAUSED",
    "COMPLETED",
    "toString",
    "__proto__",
    true,
    ["completed"],
    { completed: true },
  ];
  test.each(states.map((state) => [state]))("%j", (state) => {
    const status = state === undefined ? {} : { state, message: SAID };
    const bare = { id: "t-1", contextId: "c", artifacts: [ARTIFACT], history: [SAID], status };
    for (const body of [
      bare,
      { task: bare },
      { ...bare, kind: "task" },
      { statusUpdate: { taskId: "t", status } },
      { kind: "status-update", taskId: "t", status, final: true },
      { jsonrpc: "2.0", id: LEASE, result: { task: bare } },
      // It also looks like a Message; the state decides.
      { messageId: "m", role: "agent", parts: [], status },
    ]) {
      const error = refused(body);
      expect(error.code).toBe("unknown_task_state");
      expect(issuesOf(error)[0]?.path).toMatch(/status\.state$/);
    }
  });

  test("no status at all", () => {
    for (const body of [{ task: { id: "t" } }, { kind: "task", id: "t", status: null }, { id: "t" }]) {
      expect(refused(body).code).toBe("unknown_task_state");
    }
    const real = written({ $case: "task", value: task(TaskState.TASK_STATE_UNSPECIFIED) });
    for (const body of Object.values(real)) expect(refused(body).code).toBe("unknown_task_state");
  });
});

describe("a message completes", () => {
  const full = said("", {
    role: Role.ROLE_AGENT,
    parts: [
      part({ $case: "text", value: "hi" }, { metadata: { lang: "en" } }),
      part({ $case: "raw", value: Buffer.from("bytes") }, { filename: "f.png", mediaType: "image/png" }),
      part({ $case: "url", value: "https://x.example/f" }, { mediaType: "text/html" }),
      part({ $case: "data", value: { answer: 42, deep: [null] } }),
      part({ $case: "data", value: [1, 2] }, { metadata: { unit: "m" } }),
      part({ $case: "data", value: "plain" }),
    ],
    metadata: { trace: { id: 1 } },
    extensions: ["urn:e"],
    referenceTaskIds: ["t-0"],
  });
  const bodies = written({ $case: "message", value: full });

  test.each(Object.keys(bodies))("%s, with all its content", (form) => {
    expect(parseA2aReply(bodies[form]).action).toEqual({
      kind: "reply",
      state: "completed",
      bare: true,
      message: Message.toJSON(full),
    });
  });

  test("the role may be the caller's, in any spelling", () => {
    for (const role of ["user", "ROLE_USER", 1]) {
      expect(messageOf({ messageId: "m", role, parts: [] }).role).toBe("ROLE_USER");
    }
  });

  test("parts absent, null or empty", () => {
    for (const parts of [{}, { parts: null }, { parts: [] }]) {
      for (const message of [
        { messageId: "m", role: "ROLE_AGENT", ...parts },
        { kind: "message", messageId: "m", role: "agent", ...parts },
      ]) {
        for (const body of [message, { message }, { jsonrpc: "2.0", id: 1, result: message }]) {
          expect(messageOf(body)).toEqual({ messageId: "m", role: "ROLE_AGENT", parts: [] });
        }
      }
      const done = {
        status: { state: "completed", message: parts },
        artifacts: [{ artifactId: "a", ...parts }],
      };
      expect(parseA2aReply(done).action).toMatchObject({
        message: { parts: [] },
        artifacts: [{ artifactId: "a", parts: [] }],
      });
    }
  });

  test("optional members that are null are unset; unknown ones pass", () => {
    const message = {
      messageId: "m",
      role: "agent",
      contextId: null,
      metadata: null,
      extensions: null,
      x: 1,
    };
    expect(messageOf({ ...message, parts: [{ kind: "text", text: "a", metadata: null, y: 2 }] })).toEqual({
      messageId: "m",
      role: "ROLE_AGENT",
      x: 1,
      parts: [{ text: "a", y: 2 }],
    });
  });

  test("null is a value for data", () => {
    const parts = [
      { data: null },
      { kind: "data", data: null },
      { text: "t", data: null },
      { kind: "data", data: { value: null }, metadata: { data_part_compat: true } },
    ];
    expect(messageOf({ messageId: "m", parts }).parts).toEqual([
      { data: null },
      { data: null },
      { text: "t" },
      { data: null },
    ]);
  });

  test("a missing id is derived from the content, so a repeated reply gets the same id", () => {
    const make = (text: string) => messageOf({ role: "agent", messageId: "", parts: [{ text }] }).messageId;
    expect(make("a")).toMatch(/^msg_[\w-]{32}$/);
    expect(make("a")).toBe(make("a"));
    expect(make("a")).not.toBe(make("b"));
  });

  function messageOf(body: unknown) {
    const { action } = parseA2aReply(body);
    if (action.kind !== "reply" || action.state !== "completed" || !action.message)
      throw new Error("no message");
    return action.message;
  }
});

describe("the content of a task", () => {
  const history = [
    said("asked", { messageId: "h-1", role: Role.ROLE_USER }),
    said("first", { messageId: "h-2" }),
    said("last", { messageId: "h-3" }),
    said("thanks", { messageId: "h-4", role: Role.ROLE_USER }),
  ];
  const silent = (state: TaskState) => ({ state, message: undefined, timestamp: undefined });
  const forms = (state: TaskState) =>
    Object.values(written({ $case: "task", value: task(state, { status: silent(state), history }) }));

  test("the agent's last message is the result if the status has none", () => {
    for (const state of [3, 4, 7]) {
      for (const body of forms(state)) {
        expect(parseA2aReply(body).action).toMatchObject({
          message: { messageId: "h-3", parts: [{ text: "last" }] },
        });
      }
    }
  });

  test("but not in progress, a question, or an error", () => {
    for (const state of [1, 2, 5, 6, 8]) {
      for (const body of forms(state)) expect(parseA2aReply(body).action).not.toHaveProperty("message");
    }
    for (const body of forms(4)) expect(parseA2aReply(body).action).not.toHaveProperty("error");
  });

  test("a very long error is cut between characters", () => {
    const text = "é".repeat(40_000);
    const failed = { status: { state: "failed", message: { messageId: "m", parts: [{ text }] } } };
    const { action } = parseA2aReply(failed);
    expect(action).toMatchObject({ error: { message: "é".repeat(32_768) } });
  });
});

describe("an artifact event is progress", () => {
  const bodies = written({
    $case: "artifactUpdate",
    value: { taskId: "t-1", contextId: "c", artifact, append: true, lastChunk: false, metadata: undefined },
  });
  test.each(Object.keys(bodies))("%s", (form) => {
    expect(parseA2aReply(bodies[form]).action).toEqual({
      kind: "progress",
      artifacts: [ARTIFACT],
      append: true,
      last_chunk: false,
    });
  });

  test("without flags it replaces the artifact", () => {
    const { action } = parseA2aReply({ artifactUpdate: { artifact: { artifactId: "a" } } });
    expect(action).toMatchObject({
      artifacts: [{ artifactId: "a", parts: [] }],
      append: false,
      last_chunk: false,
    });
  });
});

describe("a JSON-RPC error fails the work", () => {
  test("with its message; its data is dropped", () => {
    const error = {
      code: -32603,
      message: "out of ink",
      data: { stack: "secret", delegation_id: DELEGATION },
    };
    expect(parseA2aReply({ jsonrpc: "2.0", id: LEASE, result: null, error })).toEqual({
      address: { by: "lease", lease_id: LEASE },
      action: {
        kind: "reply",
        state: "failed",
        error: { code: "agent_error", message: "out of ink", retryable: false },
      },
    });
  });

  test("an empty message is replaced by the engine's text", () => {
    const body = { jsonrpc: "2.0", id: null, error: { code: 1, message: "" } };
    expect(parseA2aReply(body)).toEqual({ address: null, action: { kind: "reply", state: "failed" } });
  });
});
