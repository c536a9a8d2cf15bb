/**
 * Delegations that end while nobody holds them: their tasks are canceled, whoever started them and whatever died
 * since.
 */
import { TaskState } from "@a2a-js/sdk";
import { expect, test, vi } from "vitest";
import { startA2aServer } from "../support/a2a-server.ts";
import { as, client, startBroker } from "../support/broker.ts";
import { startGatewayProcess } from "../support/gateway-process.ts";
import { SLOW, setupRelay, startRelaying, watching } from "../support/relaying.ts";
import { until } from "../support/until.ts";

vi.setConfig({ testTimeout: 180_000 });

const asking = (turn: { begin: () => void; status: (state: string, said: string) => void }) => {
  turn.begin();
  turn.status("INPUT_REQUIRED", "Deploy?");
};

test("canceled while no relay runs: the next one cancels the task", async () => {
  const { delegate, inState, server, api, relayed, url } = await setupRelay({ turn: asking });
  const id = await delegate("deploy");
  const kept = await delegate("deploy later");
  await inState(id, "input_required");
  await inState(kept, "input_required");
  await relayed.stop();
  await api.cancel(id);
  expect(server.canceled).toEqual([]);
  startRelaying(url, "remote", server.url);
  await until(() => server.canceled.length === 1, SLOW);
  expect(server.canceled).toEqual([server.turns.find(({ text }) => text === "deploy")?.taskId]);
});

test("canceled while another relay runs: that one cancels the task", async () => {
  const { delegate, inState, server, api, relayed, url } = await setupRelay({ turn: asking });
  const id = await delegate("deploy");
  await inState(id, "input_required");
  await relayed.stop();
  startRelaying(url, "remote", server.url);
  await until(() => server.calls.length > 0, SLOW);
  await api.cancel(id);
  await until(() => server.canceled.length === 1, SLOW);
});

test("canceled before the relay received the task's id: the task is found and canceled", async () => {
  const { delegate, server, api, relayed, url } = await setupRelay({
    turn(turn) {
      turn.begin();
      return new Promise<void>(() => undefined);
    },
  });
  server.fault = (method) => (method.startsWith("Send") ? "deaf" : 503);
  const id = await delegate("deploy");
  await until(() => server.turns.length === 1 && server.calls.includes("ListTasks"), SLOW);
  await relayed.stop();
  expect((await api.get(id)).body.checkpoint).toMatchObject({ sending: true });
  await api.cancel(id);
  server.fault = () => undefined;
  startRelaying(url, "remote", server.url);
  await until(() => server.canceled.length === 1, SLOW);
});

test("a question that expires cancels its task", async () => {
  const { delegate, ended, inState, server, gateway } = await setupRelay(
    { turn: asking },
    { agent: { limits: { interrupt_ttl_seconds: 1 } } },
  );
  const id = await delegate("deploy");
  await inState(id, "input_required");
  await until(async () => (await gateway.sweep.tick()) > 0, SLOW);
  expect(await ended(id)).toMatchObject({ error: { code: "interrupt_expired" } });
  await until(() => server.canceled.length === 1, SLOW);
});

test("a checkpoint is shown to its agent and the operator, and to nobody else", async () => {
  const { delegate, inState, server, api, url } = await setupRelay({ turn: asking });
  const id = await delegate("deploy");
  await inState(id, "input_required");
  const own = await as(url, "agent:remote");
  for (const one of [api, own]) {
    expect((await one.get(id)).body.checkpoint).toMatchObject({ task: server.tasks()[0] });
  }
  for (const principal of ["viewer:wall", "approver:ann"]) {
    expect((await (await as(url, principal)).get(id)).body.checkpoint).toBeUndefined();
  }
});

test("push: the gateway that asked was killed, and the server is away at the time of the cancel", async () => {
  const server = await startA2aServer({ turn: asking });
  const options = { callbackAllow: ["127.0.0.1"], sweepEveryMs: 100 };
  const broker = await startBroker(options);
  await broker.gateway.close();
  const dying = await startGatewayProcess(broker.db, options);
  const there = client(dying.url);
  await there.agent("remote", { delivery: { mode: "push", url: server.url } });
  const { body } = await there.delegate("remote", { task: "deploy" });
  await watching(there).inState(body.id, "input_required");
  await dying.kill();
  const here = client((await broker.another(options)).url);
  await server.kill();
  await here.cancel(body.id);
  const notCanceled = () => broker.log.some((line) => line.includes("the task was not canceled"));
  await until(notCanceled, SLOW);
  await server.restart();
  const [task = ""] = server.tasks();
  await until(async () => (await server.task(task))?.status?.state === TaskState.TASK_STATE_CANCELED, SLOW);
});
