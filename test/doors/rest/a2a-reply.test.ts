import {
  type Artifact,
  Message,
  type Part,
  Role,
  StreamResponse,
  type Task,
  TaskState,
  taskStateToJSON,
} from "@a2a-js/sdk";
import { legacyPushNotificationToV1StreamResponse } from "@a2a-js/sdk/compat/v0_3";
import { V03PushNotificationSerializer } from "@a2a-js/sdk/compat/v0_3/server";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type A2aAction, parseA2aReply } from "../../../src/doors/rest/a2a-reply.ts";
import type { Action } from "../../../src/engine/leases/a2a-reply.ts";
import { A2A_STATES, type A2aStateName, fromA2aState, toA2aState } from "../../../src/schema/a2a-task.ts";
import { stateSchema } from "../../../src/schema/delegation.ts";
import { ErrandError } from "../../../src/schema/errors.ts";
import { LIMITS } from "../../../src/schema/limits.ts";

const TAIL = "0_0123456789abcdefghjkmnpqrs";
const OTHER = "0_zzzzzzzzzzzzzzzzzzzzzzzzzz";
const DELEGATION = `dlg_${TAIL}`;
const LEASE = `lse_${TAIL}_2`;

type Payload = NonNullable<StreamResponse["payload"]>;
type Json = Record<string, unknown>;

/** The SDK's enum member of a row; the first test checks that each row has one. */
const stateOf = (name: A2aStateName): TaskState => A2A_STATES[name].number;
const STATES = Object.keys(A2A_STATES).filter((name): name is A2aStateName => name in A2A_STATES);
const MEANT = STATES.filter((name) => A2A_STATES[name].means !== null);

const part = (content: Part["content"], more: Partial<Part> = {}): Part => ({
  content,
  metadata: undefined,
  filename: "",
  mediaType: "",
  ...more,
});

const said = (text: string, more: Partial<Message> = {}): Message => ({
  messageId: "m-1",
  contextId: "ctx",
  taskId: "t-1",
  role: Role.ROLE_AGENT,
  parts: [part({ $case: "text", value: text })],
  metadata: undefined,
  extensions: [],
  referenceTaskIds: [],
  ...more,
});

const artifact: Artifact = {
  artifactId: "a-1",
  name: "report",
  description: "",
  parts: [
    part({ $case: "raw", value: Buffer.from("bytes") }, { filename: "r.bin", mediaType: "application/x" }),
  ],
  metadata: { page: 1 },
  extensions: ["urn:x"],
};
const ARTIFACT = {
  artifactId: "a-1",
  name: "report",
  parts: [{ raw: "Ynl0ZXM=", filename: "r.bin", mediaType: "application/x" }],
  metadata: { page: 1 },
  extensions: ["urn:x"],
};
const SAID = {
  messageId: "m-1",
  contextId: "ctx",
  taskId: "t-1",
  role: "ROLE_AGENT",
  parts: [{ text: "words" }],
};

const task = (state: TaskState, more: Partial<Task> = {}): Task => ({
  id: "t-1",
  contextId: "ctx",
  status: { state, message: said("words"), timestamp: "2026-11-20T10:00:00.000Z" },
  artifacts: [artifact],
  history: [],
  metadata: undefined,
  ...more,
});

/** A real object in each version's form, in every possible envelope. */
function written(payload: Payload): Record<string, unknown> {
  const v10 = StreamResponse.toJSON({ payload }) as Json;
  const v03 = JSON.parse(String(new V03PushNotificationSerializer().serialize({ payload }).body));
  const bare = v10[payload.$case];
  const envelope = (result: unknown) => ({ jsonrpc: "2.0", id: 7, result });
  return {
    "1.0 bare": bare,
    "1.0 wrapped": v10,
    "1.0 enveloped": envelope(v10),
    "1.0 enveloped, unwrapped": envelope(bare),
    "1.0 with error null": { ...envelope(v10), error: null },
    "0.3 bare": v03,
    "0.3 wrapped": { [payload.$case]: v03 },
    "0.3 enveloped": envelope(v03),
    "0.3 enveloped, without kind": envelope({ ...v03, kind: undefined }),
  };
}

function refused(body: unknown): ErrandError {
  try {
    parseA2aReply(body);
  } catch (error) {
    if (error instanceof ErrandError) return error;
    throw error;
  }
  throw new Error("it was accepted");
}
const issuesOf = (error: ErrandError) => error.context.details?.issues as { path: string; reason: string }[];

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

describe("the table of task states", () => {
  test("has every member of the SDK's enum, by name and number, and no other", () => {
    const members = Object.entries(TaskState).filter(
      ([name, number]) => typeof number === "number" && name !== "UNRECOGNIZED",
    );
    expect(Object.fromEntries(members)).toEqual(
      Object.fromEntries(STATES.map((name) => [name, A2A_STATES[name].number])),
    );
    for (const name of STATES) expect(taskStateToJSON(stateOf(name))).toBe(name);
  });

  test.each(STATES)("spells %s as 0.3 does", (name) => {
    const { v03 } = A2A_STATES[name];
    const body = { kind: "task", id: "t", contextId: "c", status: { state: v03 } };
    const { payload } = legacyPushNotificationToV1StreamResponse(body);
    expect(payload?.$case === "task" && payload.value.status?.state).toBe(stateOf(name));
  });

  test.each(STATES)("reads %s in every spelling, and no similar text", (name) => {
    const row = A2A_STATES[name];
    for (const spelling of [name, row.v03, row.number]) {
      expect(fromA2aState(spelling)).toBe(row.means === null ? undefined : row);
    }
    for (const near of [name.toLowerCase(), row.v03.toUpperCase(), String(row.number), [name], `${name} `]) {
      expect(fromA2aState(near)).toBeUndefined();
    }
  });

  test.each(stateSchema.options)("converts %s to A2A and back", (state) => {
    expect(fromA2aState(toA2aState(state))?.state).toBe(state);
    expect(STATES.filter((name) => A2A_STATES[name].state === state)).toHaveLength(1);
  });
});

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

describe("the address of a reply", () => {
  const lease = { by: "lease", lease_id: LEASE };
  const delegation = { by: "delegation", delegation_id: DELEGATION };
  const addressOf = (body: unknown) => parseA2aReply(body).address;
  const message = (metadata: unknown) => ({ messageId: "m", role: "agent", parts: [], metadata });
  /** Every place of metadata. */
  const inEveryPlace = (metadata: unknown): unknown[] => [
    message(metadata),
    { message: message(metadata) },
    { id: "t", status: { state: "working" }, metadata },
    { kind: "task", id: "t", status: { state: "completed", message: message(metadata) } },
    { statusUpdate: { taskId: "t", status: { state: 2 }, metadata } },
    { statusUpdate: { taskId: "t", status: { state: 2, message: message(metadata) } } },
    { kind: "artifact-update", taskId: "t", artifact: { artifactId: "a" }, metadata },
  ];
  const enveloped = (id: unknown, result: unknown) => ({ jsonrpc: "2.0", id, result });

  test("is null when no id names one", () => {
    for (const metadata of [undefined, null, {}, { lease_id: null }, { other: 1 }]) {
      for (const body of inEveryPlace(metadata)) {
        expect(addressOf(body)).toBeNull();
        for (const id of [undefined, null, 0, "", "req-1", "lse_", `x${LEASE}`]) {
          expect(addressOf(enveloped(id, body))).toBeNull();
        }
      }
    }
  });

  test("is the lease that the envelope or any metadata names", () => {
    for (const body of inEveryPlace({ delegation_id: DELEGATION })) {
      expect(addressOf(enveloped(LEASE, body))).toEqual(lease);
    }
    for (const body of inEveryPlace({ lease_id: LEASE, delegation_id: DELEGATION, foreign: true })) {
      expect(addressOf(body)).toEqual(lease);
      expect(addressOf(enveloped("req-1", body))).toEqual(lease);
      expect(addressOf(enveloped(DELEGATION, body))).toEqual(lease);
    }
  });

  test("can be in the status message of a task alone", () => {
    const status = { state: "working", message: message({ lease_id: LEASE }) };
    expect(addressOf({ status, metadata: { delegation_id: DELEGATION } })).toEqual(lease);
  });

  test("is the delegation when no lease is named", () => {
    for (const body of inEveryPlace({ delegation_id: DELEGATION }))
      expect(addressOf(body)).toEqual(delegation);
    for (const body of inEveryPlace({})) expect(addressOf(enveloped(DELEGATION, body))).toEqual(delegation);
  });

  test("with contradicting ids is refused", () => {
    const other = { lease_id: `lse_${OTHER}_1`, delegation_id: `dlg_${OTHER}` };
    for (const one of [{ lease_id: other.lease_id }, { delegation_id: other.delegation_id }]) {
      for (const id of [LEASE, DELEGATION]) {
        for (const body of inEveryPlace(one))
          expect(refused(enveloped(id, body)).code).toBe("invalid_request");
      }
    }
    for (const body of [
      ...inEveryPlace({ lease_id: LEASE, delegation_id: other.delegation_id }),
      { metadata: { lease_id: LEASE }, status: { state: 2, message: message(other) } },
      // Another lease of the same delegation is still a different one.
      ...inEveryPlace({ lease_id: LEASE }).map((body) => enveloped(`lse_${TAIL}_3`, body)),
      {
        metadata: { lease_id: LEASE },
        status: { state: 2, message: message({ lease_id: `lse_${TAIL}_1` }) },
      },
    ]) {
      expect(refused(body).code).toBe("invalid_request");
    }
  });

  test("with a malformed id is refused, never ignored", () => {
    for (const bad of [
      { lease_id: "lse_1" },
      { lease_id: 5 },
      { delegation_id: "" },
      { delegation_id: [] },
    ]) {
      for (const body of inEveryPlace({ ...bad })) {
        const [issue] = issuesOf(refused(body));
        expect(issue?.path).toMatch(new RegExp(`metadata\\.${Object.keys(bad)[0]}$`));
        expect(issue?.reason).toBeTruthy();
      }
    }
  });
});

describe("errors of malformed bodies contain the path", () => {
  const message = (parts: unknown) => ({ kind: "message", messageId: "m", role: "agent", parts });
  const cases: readonly [unknown, string][] = [
    [null, ""],
    [[], ""],
    ["reply", ""],
    [{}, ""],
    [{ parts: [{ text: "a" }] }, ""],
    [{ artifactId: "a", parts: [{ text: "an artifact alone" }] }, ""],
    [[{ jsonrpc: "2.0", id: 1, result: {} }], ""],
    [{ jsonrpc: "1.0", id: 1, result: {} }, "jsonrpc"],
    [{ id: 1, result: message([]) }, "jsonrpc"],
    [{ jsonrpc: "2.0", id: {}, result: message([]) }, "id"],
    [{ jsonrpc: "2.0", id: 1 }, ""],
    [{ jsonrpc: "2.0", id: 1, method: "SendMessage", params: { message: message([]) } }, ""],
    [{ jsonrpc: "2.0", id: 1, result: message([]), error: { code: 1, message: "m" } }, ""],
    [{ jsonrpc: "2.0", id: 1, result: "done" }, "result"],
    [{ jsonrpc: "2.0", id: 1, result: {} }, "result"],
    [{ jsonrpc: "2.0", id: 1, error: "boom" }, "error"],
    [{ jsonrpc: "2.0", id: 1, error: { code: 1 } }, "error.message"],
    [{ message: {} }, "message"],
    [{ message: { metadata: {} } }, "message"],
    [{ message: "done" }, "message"],
    [{ message: message([]), task: { status: { state: 3 } } }, ""],
    [{ message: { kind: "task", status: { state: 3 } } }, "message.kind"],
    [{ task: { kind: "message", status: { state: 3 } } }, "task.kind"],
    [{ status: { state: 3, message: { kind: "task" } } }, "status.message.kind"],
    [{ kind: "reply" }, "kind"],
    [{ kind: 1 }, "kind"],
    [message("text"), "parts"],
    [message([null]), "parts.0"],
    [message([{}]), "parts.0"],
    [message([{ text: "a", url: "b" }]), "parts.0"],
    [message([{ text: "a" }, { text: 1 }]), "parts.1.text"],
    [message([{ kind: "image" }]), "parts.0.kind"],
    [message([{ kind: "text" }]), "parts.0.text"],
    [message([{ kind: "data" }]), "parts.0.data"],
    [message([{ kind: "file" }]), "parts.0.file"],
    [message([{ kind: "file", file: { name: "n" } }]), "parts.0.file"],
    [message([{ kind: "file", file: { bytes: "", uri: "" } }]), "parts.0"],
    [{ ...message([]), role: "system" }, "role"],
    [{ ...message([]), messageId: 1 }, "messageId"],
    [{ ...message([]), messageId: "m".repeat(1_025) }, "messageId"],
    [{ ...message([]), metadata: "m" }, "metadata"],
    [{ ...message([]), contextId: 1 }, "contextId"],
    [{ task: { status: "completed" } }, "task.status"],
    [{ task: { status: { state: 3 }, artifacts: {} } }, "task.artifacts"],
    [{ task: { status: { state: 3 }, artifacts: [{ parts: [] }] } }, "task.artifacts.0.artifactId"],
    [{ task: { status: { state: 3 }, history: "h" } }, "task.history"],
    [{ task: { status: { state: 3 }, metadata: [] } }, "task.metadata"],
    [{ jsonrpc: "2.0", result: { status: { state: 3, message: [] } } }, "result.status.message"],
    [{ artifactUpdate: {} }, "artifactUpdate.artifact"],
    [{ artifactUpdate: { artifact: { artifactId: "a" }, append: "yes" } }, "artifactUpdate.append"],
  ];
  test.each(cases)("%j", (body, path) => {
    const error = refused(body);
    expect(error.code).toBe("invalid_request");
    expect(issuesOf(error).map((issue) => issue.path)).toContain(path);
    for (const issue of issuesOf(error)) expect(issue.reason).not.toBe("");
  });

  test("too many artifacts", () => {
    const tooMany = Array(LIMITS.artifacts.value + 1).fill({ artifactId: "a" });
    expect(issuesOf(refused({ task: { status: { state: 3 }, artifacts: tooMany } }))[0]?.path).toBe(
      "task.artifacts",
    );
  });

  test("all issues of a message at once", () => {
    const bad = { ...message([{ text: 1 }]), contextId: 1 };
    expect(issuesOf(refused(bad)).map(({ path }) => path)).toEqual(["parts.0.text", "contextId"]);
  });
});

describe("random bodies", () => {
  const words = fc.constantFrom(
    ...STATES,
    ...STATES.map((name) => A2A_STATES[name].v03),
    ...[
      "message",
      "task",
      "status-update",
      "artifact-update",
      "text",
      "file",
      "data",
      "agent",
      "ROLE_AGENT",
      "2.0",
    ],
    ...[LEASE, DELEGATION, `lse_${OTHER}_1`],
  );
  const members = fc.constantFrom(
    ...[
      "jsonrpc",
      "id",
      "result",
      "error",
      "message",
      "task",
      "statusUpdate",
      "artifactUpdate",
      "kind",
      "status",
    ],
    ...[
      "state",
      "parts",
      "role",
      "messageId",
      "artifacts",
      "artifact",
      "artifactId",
      "history",
      "metadata",
      "text",
    ],
    ...[
      "raw",
      "url",
      "data",
      "file",
      "bytes",
      "uri",
      "lease_id",
      "delegation_id",
      "append",
      "__proto__",
      "toString",
    ],
  );
  const { json } = fc.letrec<{ json: unknown }>((tie) => ({
    json: fc.oneof(
      { depthSize: "medium", withCrossShrink: true },
      words,
      fc.integer({ min: -1, max: 9 }),
      fc.constantFrom(null, true, "", {}, []),
      fc.array(tie("json"), { maxLength: 3 }),
      fc.dictionary(members, tie("json"), { maxKeys: 6 }),
    ),
  }));
  const spelled = new Set<unknown>(["completed", "TASK_STATE_COMPLETED", 3]);
  const real = fc.constantFrom(
    ...STATES.flatMap((name) =>
      Object.values(written({ $case: "task", value: task(stateOf(name), { history: [said("h")] }) })),
    ),
    ...Object.values(written({ $case: "message", value: said("words") })),
  );

  /** Only ErrandErrors of two codes; completed only where a Message or a completed state is in the body. */
  function holds(body: unknown): void {
    let action: A2aAction;
    try {
      action = parseA2aReply(body).action;
    } catch (error) {
      expect(error).toBeInstanceOf(ErrandError);
      expect(["invalid_request", "unknown_task_state"]).toContain((error as ErrandError).code);
      expect(issuesOf(error as ErrandError).length).toBeGreaterThan(0);
      return;
    }
    // The engine accepts every parsed action.
    const taken: Action = action;
    if (taken.kind !== "reply" || taken.state !== "completed") return;
    const result = ((body as Json).result ?? body) as Json;
    const { kind = null, message, task, statusUpdate } = result;
    const isMessage = (value: unknown) =>
      ["messageId", "role", "parts", "kind"].some((key) => Object.hasOwn(Object(value), key));
    const isDone = (value: unknown) => spelled.has(Object(Object(value).status).state);
    const proofs = [
      kind === null && isMessage(message),
      kind === null && (isDone(result) || isDone(task) || isDone(statusUpdate)),
      kind === null && isMessage(result) && (result.status ?? null) === null,
      kind === "message",
      (kind === "task" || kind === "status-update") && isDone(result),
    ];
    expect(proofs).toContain(true);
  }

  test("random JSON", () => {
    fc.assert(fc.property(fc.jsonValue({ maxDepth: 8 }), holds), { numRuns: 2_000 });
  });

  test("random JSON with the words of A2A", () => {
    fc.assert(fc.property(json, holds), { numRuns: 20_000 });
  });

  test("real replies with something random inserted anywhere", () => {
    const path = fc.array(fc.nat(), { minLength: 1, maxLength: 7 });
    fc.assert(
      fc.property(real, path, fc.oneof(json, fc.jsonValue()), (body, at, value) =>
        holds(put(body, at, value)),
      ),
      { numRuns: 20_000 },
    );
  });

  function put(node: unknown, [index = 0, ...deeper]: readonly number[], value: unknown): unknown {
    if (typeof node !== "object" || node === null) return value;
    const keys = Object.keys(node);
    const key = keys[index % (keys.length || 1)];
    if (key === undefined) return value;
    const child = put((node as Json)[key], deeper, value);
    const changed = deeper.length === 0 ? value : child;
    if (Array.isArray(node)) return node.with(Number(key), changed);
    return { ...node, [key]: changed };
  }
});
