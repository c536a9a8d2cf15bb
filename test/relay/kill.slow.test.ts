/** `errand relay` is killed in each phase: the next relay continues the same task. Needs a build. */
import { expect, test, vi } from "vitest";
import { setup } from "../cli/broker/cli.ts";
import { type A2aServerOptions, startA2aServer } from "../support/a2a-server.ts";
import { SLOW, watching } from "../support/relaying.ts";
import { until } from "../support/until.ts";

vi.setConfig({ testTimeout: 120_000 });

async function startRelayedServer(options: A2aServerOptions) {
  const server = await startA2aServer(options);
  const { api, start } = await setup({ sweepEveryMs: 100 });
  await api.agent("remote", { backoff: { initial_ms: 0 } });
  const relay = async () => {
    const run = start(["relay", "--agent", "remote", "--to", server.url, "--lease", "2"]);
    await until(() => run.stderr().includes("relaying for remote"), {
      what: run.stderr(),
    });
    return run;
  };
  const kill = (run: Awaited<ReturnType<typeof relay>>) => {
    run.child.kill("SIGKILL");
    return run.ended();
  };
  return { server, api, relay, kill, ...watching(api) };
}

const never = () => new Promise<void>(() => undefined);

test.each([
  ["1.0", true],
  ["1.0", false],
] as const)(
  "killed before the message arrived, and after, before the answer (A2A %s, streaming %s)",
  async (version, streaming) => {
    const { server, relay, delegate, ended } = await startRelayedServer({
      version,
      streaming,
      turn(turn) {
        turn.begin();
        turn.status("COMPLETED", `did ${turn.text}`);
      },
    });
    const first = await relay();
    let sent = 0;
    server.fault = (method) => {
      if (!method.startsWith("Send")) return undefined;
      sent += 1;
      if (sent > 2) return undefined;
      for (const one of [first, second]) one?.child.kill("SIGKILL");
      return sent === 1 ? "cut" : "deaf";
    };
    let second: typeof first | undefined;
    const id = await delegate("it");
    await first.ended();
    second = await relay();
    await second.ended();
    await relay();
    expect(await ended(id)).toMatchObject({ state: "completed", reply: { parts: [{ text: "did it" }] } });
    expect([server.turns.length, sent]).toEqual([1, 2]);
  },
);

test.each([
  ["1.0", true],
  ["1.0", false],
  ["0.3", true],
  ["0.3", false],
] as const)("killed while the task works (A2A %s, streaming %s)", async (version, streaming) => {
  let go = () => {};
  const { server, relay, kill, delegate, ended, api } = await startRelayedServer({
    version,
    streaming,
    async turn(turn) {
      turn.begin();
      turn.artifact("out", "one ");
      await new Promise<void>((resolve) => {
        go = resolve;
      });
      turn.artifact("out", "two", { append: true });
      turn.status("COMPLETED", "done");
    },
  });
  const first = await relay();
  const id = await delegate("long");
  await until(async () => (await api.get(id)).body.artifacts.length === 1, SLOW);
  await kill(first);
  await relay();
  await until(
    async () => (await api.get(id)).body.attempt === 2 && (await api.get(id)).body.state === "working",
    SLOW,
  );
  await until(async () => (await api.get(id)).body.artifacts.length === 1, SLOW);
  go();
  const done = await ended(id);
  expect(done).toMatchObject({ state: "completed", attempt: 2, reply: { parts: [{ text: "done" }] } });
  expect(done.artifacts[0].parts).toEqual([{ text: "one " }, { text: "two" }]);
  expect(server.turns).toHaveLength(1);
});

test("killed while a question is open, and again between the answer and its acknowledgement", async () => {
  const { server, relay, kill, delegate, ended, inState, api } = await startRelayedServer({
    turn(turn) {
      turn.begin();
      if (turn.number === 1) turn.status("INPUT_REQUIRED", "Which?");
      else turn.status("COMPLETED", turn.text);
    },
  });
  const first = await relay();
  const id = await delegate("choose");
  const asks = await inState(id, "input_required");
  await kill(first);
  await api.answer(id, asks.interrupt.id, { text: "that" });
  let second: typeof first | undefined;
  server.fault = (method) => {
    if (!method.startsWith("Send") || !second?.isRunning()) return undefined;
    second.child.kill("SIGKILL");
    return "deaf";
  };
  second = await relay();
  await second.ended();
  server.fault = () => undefined;
  await relay();
  expect(await ended(id)).toMatchObject({ state: "completed", reply: { parts: [{ text: "that" }] } });
  expect(server.turns.map(({ text }) => text)).toEqual(["choose", "that"]);
  expect(server.tasks()).toHaveLength(1);
});

test("a relay that stops returns its work, and the next relay continues", async () => {
  let go = () => {};
  const { server, relay, delegate, ended, api } = await startRelayedServer({
    async turn(turn) {
      turn.begin();
      turn.status("WORKING", "at it");
      await new Promise<void>((resolve) => {
        go = resolve;
      });
      turn.status("COMPLETED", "done");
    },
  });
  const first = await relay();
  const id = await delegate("long");
  await until(async () => (await api.get(id)).body.progress !== null, SLOW);
  first.child.kill("SIGTERM");
  expect(await first.ended()).toBe(143);
  expect(first.stderr()).toContain(`released ${id}`);
  expect((await api.get(id)).body).toMatchObject({ state: "submitted", attempt: 1 });
  await relay();
  await until(async () => (await api.get(id)).body.state === "working", SLOW);
  go();
  expect(await ended(id)).toMatchObject({ state: "completed", attempt: 1 });
  expect([server.turns.length, server.canceled]).toEqual([1, []]);
});

test("killing its relay does not cancel a task", async () => {
  const { server, relay, kill, delegate, inState, api } = await startRelayedServer({
    turn(turn) {
      turn.begin();
      return never();
    },
  });
  const first = await relay();
  const id = await delegate("long");
  await until(() => server.turns.length === 1, SLOW);
  await kill(first);
  const second = await relay();
  await until(async () => (await api.get(id)).body.attempt === 2, SLOW);
  await inState(id, "working");
  await api.cancel(id);
  await until(() => server.canceled.length === 1, SLOW);
  expect(second.isRunning()).toBe(true);
});
