/** The relay between a real broker and real A2A servers, 1.0 and 0.3, streaming or not. */
import { describe, expect, test, vi } from "vitest";
import { rawCalls } from "../doors/a2a/support.ts";
import type { Version } from "../support/a2a-server.ts";
import { OPERATOR } from "../support/broker.ts";
import { SLOW, setupRelay as setup } from "../support/relaying.ts";
import { until } from "../support/until.ts";

vi.setConfig({ testTimeout: 120_000 });

const KINDS: [Version, boolean][] = [
  ["1.0", true],
  ["1.0", false],
  ["0.3", true],
  ["0.3", false],
];

test("a result that does not fit fails the delegation, once", async () => {
  const { server, delegate, ended } = await setup({
    turn(turn) {
      if (turn.text === "say") return turn.message("5");
      turn.begin();
      turn.status("COMPLETED", "5");
    },
  });
  for (const task of ["do", "say"]) {
    const done = await ended(await delegate(task, { result_schema: { type: "integer" } }));
    expect([done.state, done.error.code, done.attempt]).toEqual(["failed", "result_invalid", 1]);
  }
  expect(server.turns).toHaveLength(2);
});

describe.each(KINDS)("A2A %s, streaming %s", (version, streaming) => {
  test("a task's progress, artifacts and end become the delegation's", async () => {
    const { delegate, ended, server, api } = await setup({
      version,
      streaming,
      turn(turn) {
        turn.begin();
        turn.status("WORKING", "counting");
        turn.artifact("out", "one ");
        turn.artifact("out", "two", { append: true, lastChunk: true });
        turn.status("COMPLETED", `did ${turn.text}`);
      },
    });
    const id = await delegate("count");
    const done = await ended(id);
    expect(done).toMatchObject({ state: "completed", attempt: 1, reply: { parts: [{ text: "did count" }] } });
    expect(done.artifacts).toMatchObject([{ artifactId: "out", parts: [{ text: "one " }, { text: "two" }] }]);
    expect(server.tasks()).toHaveLength(1);
    const [turn] = server.turns;
    expect(turn?.message).toMatchObject({
      messageId: done.message.messageId,
      contextId: done.context_id,
      metadata: { delegation_id: id },
    });
    expect(JSON.stringify(turn?.message)).not.toContain("lse_");
    expect((await api.lease("remote", { wait_seconds: 0 })).body.leases).toEqual([]);
  });
  test("an approval in the middle: it is asked once, and the answer goes into the same task", async () => {
    const { delegate, ended, inState, server, api } = await setup({
      version,
      streaming,
      turn(turn) {
        turn.begin();
        if (turn.number === 1) {
          turn.artifact("plan", "step one");
          return turn.status("INPUT_REQUIRED", "Deploy?");
        }
        if (turn.number === 2) return turn.status("INPUT_REQUIRED", "Really?");
        turn.status("COMPLETED", `deployed: ${turn.text}`);
      },
    });
    const id = await delegate("deploy");
    const asks = await inState(id, "input_required");
    expect(asks.interrupt.requests).toMatchObject([{ message: { parts: [{ text: "Deploy?" }] } }]);
    expect(asks.artifacts).toMatchObject([{ artifactId: "plan", parts: [{ text: "step one" }] }]);
    await api.answer(id, asks.interrupt.id, { decision: "approve", text: "go" });
    const again = await until(async () => {
      const { body } = await api.get(id);
      return body.interrupt !== null && body.interrupt.id !== asks.interrupt.id && body;
    }, SLOW);
    expect(again.interrupt.requests).toMatchObject([{ message: { parts: [{ text: "Really?" }] } }]);
    await api.answer(id, again.interrupt.id, { text: "yes" });
    expect(await ended(id)).toMatchObject({
      state: "completed",
      reply: { parts: [{ text: "deployed: yes" }] },
    });
    expect(server.tasks()).toHaveLength(1);
    expect(server.turns.map(({ text }) => text)).toEqual(["deploy", "go", "yes"]);
    expect(server.turns[1]?.message).toMatchObject({
      taskId: server.tasks()[0],
      metadata: { decision: "approve" },
    });
  });

  test("a question for a credential becomes auth_required", async () => {
    const { delegate, ended, inState, server, api } = await setup({
      version,
      streaming,
      turn(turn) {
        turn.begin();
        if (turn.number === 1) turn.status("AUTH_REQUIRED", "A token, please");
        else turn.status("COMPLETED", turn.text);
      },
    });
    const id = await delegate("log in");
    const asks = await inState(id, "auth_required");
    expect(asks.interrupt).toMatchObject({ kind: "auth" });
    await api.answer(id, asks.interrupt.id, { text: "t-1" });
    expect(await ended(id)).toMatchObject({ state: "completed", reply: { parts: [{ text: "t-1" }] } });
    expect(server.tasks()).toHaveLength(1);
  });

  test("a cancel of the delegation cancels the task", async () => {
    const { delegate, inState, server, api } = await setup({
      version,
      streaming,
      turn(turn) {
        turn.begin();
        return new Promise(() => undefined);
      },
    });
    const id = await delegate("for ever");
    await inState(id, "working");
    await until(() => server.turns.length === 1, SLOW);
    await api.cancel(id);
    await until(() => server.canceled.length === 1, SLOW);
    expect(server.canceled).toEqual(server.tasks());
    expect((await api.get(id)).body.state).toBe("canceled");
  });

  test.each([
    [
      "CANCELED",
      { state: "canceled", error: { code: "canceled", message: expect.stringContaining("no more") } },
    ],
    ["REJECTED", { state: "rejected", reply: { parts: [{ text: "no more" }] } }],
    ["FAILED", { state: "failed", error: { code: "agent_error", message: "no more", category: "UPSTREAM" } }],
  ])("a task that ends %s", async (state, expected) => {
    const { delegate, ended } = await setup({
      version,
      streaming,
      turn(turn) {
        turn.begin();
        turn.status(state, "no more");
      },
    });
    expect(await ended(await delegate("x"))).toMatchObject(expected);
  });

  test("a bare message becomes the reply, and stays one for a blocking A2A sender", async () => {
    const { delegate, ended, url } = await setup({
      version,
      streaming,
      turn: (turn) => turn.message(`hi ${turn.text}`),
    });
    expect(await ended(await delegate("you"))).toMatchObject({
      state: "completed",
      reply: { parts: [{ text: "hi you" }] },
    });
    const message = { messageId: "m1", role: "ROLE_USER", parts: [{ text: "you" }] };
    const { body } = await rawCalls(url, OPERATOR, "remote").rpc("SendMessage", { message });
    expect(body.result).toMatchObject({ message: { parts: [{ text: "hi you" }], role: "ROLE_AGENT" } });
    expect(body.result.message.taskId).toMatch(/^dlg_/);
  });

  test("an exception in the agent fails the delegation without its text", async () => {
    // The SDK prints the exception.
    vi.spyOn(console, "error").mockReturnValue();
    const { delegate, ended, api, relayed } = await setup({
      version,
      streaming,
      turn(turn) {
        if (turn.text === "late") turn.begin();
        throw new Error("exception-canary at /srv/agent.js");
      },
    });
    for (const when of ["early", "late"]) {
      const id = await delegate(when);
      const done = await ended(id);
      expect(done.state).toBe("failed");
      const events = await api.events(id);
      expect(JSON.stringify([done, events.body, relayed.notes, relayed.events])).not.toContain("canary");
    }
  });

  test("a follow-up reaches the task, once", async () => {
    const received: string[] = [];
    let finish = () => {};
    const { delegate, ended, inState, server, api } = await setup({
      version,
      streaming,
      async turn(turn) {
        received.push(turn.text);
        if (turn.number === 1) {
          turn.begin();
          await new Promise<void>((resolve) => {
            finish = resolve;
          });
          turn.status("COMPLETED", received.join(", "));
        } else {
          turn.begin();
          finish();
          await new Promise(() => undefined);
        }
      },
    });
    const id = await delegate("begin");
    await inState(id, "working");
    await until(() => server.turns.length === 1, SLOW);
    await api.message(id, "faster");
    expect(await ended(id)).toMatchObject({
      state: "completed",
      reply: { parts: [{ text: "begin, faster" }] },
    });
    expect(server.tasks()).toHaveLength(1);
    expect(received).toEqual(["begin", "faster"]);
  });
  test("a cancel while a question is open cancels the task", async () => {
    const { delegate, inState, server, api } = await setup({
      version,
      streaming,
      turn(turn) {
        turn.begin();
        turn.status("INPUT_REQUIRED", "Deploy?");
      },
    });
    const id = await delegate("deploy");
    await inState(id, "input_required");
    await api.cancel(id);
    await until(() => server.canceled.length === 1, SLOW);
    expect(server.canceled).toEqual(server.tasks());
  });
});
