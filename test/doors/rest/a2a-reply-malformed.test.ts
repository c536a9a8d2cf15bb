/** Malformed bodies in A2A's form: each is refused with the path of the error, and none is taken for a completed reply. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type A2aAction, parseA2aReply } from "../../../src/doors/rest/a2a-reply.ts";
import type { Action } from "../../../src/engine/leases/a2a-reply.ts";
import { A2A_STATES } from "../../../src/schema/a2a-task.ts";
import { ErrandError } from "../../../src/schema/errors.ts";
import { LIMITS } from "../../../src/schema/limits.ts";
import {
  DELEGATION,
  issuesOf,
  type Json,
  LEASE,
  OTHER,
  refused,
  STATES,
  said,
  stateOf,
  task,
  written,
} from "./a2a-bodies.ts";

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
      // Plain conditions: an assertion would take longer than the parser.
      if (!(error instanceof ErrandError)) throw error;
      const isKnown = error.code === "invalid_request" || error.code === "unknown_task_state";
      if (!isKnown || issuesOf(error).length === 0) throw error;
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
    if (!proofs.includes(true)) throw new Error("completed without a Message or a completed state");
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
