/** The special results of a handler, and the checkpoint for its next run, with a real broker. */
import { expect, onTestFinished, test } from "vitest";
import { Agent } from "../../../src/client/agent.ts";
import type { AgentEvent, Handler } from "../../../src/client/work.ts";
import { client, OPERATOR, startBroker } from "../../support/broker.ts";
import { until } from "../../support/until.ts";

async function setup(handler: Handler) {
  const { url } = await startBroker();
  const api = client(url);
  await api.agent("scout");
  const id: string = (await api.delegate("scout")).body.id;
  const events: AgentEvent[] = [];
  const onEvent = (event: AgentEvent) => events.push(event);
  const agent = new Agent({ url, token: OPERATOR, agent: "scout", onEvent }, handler);
  const running = agent.run();
  onTestFinished(async () => {
    await agent.stop();
    await running;
  });
  const ended = () =>
    until(
      async () => {
        const { body } = await api.get(id);
        return body.finished_at !== null && body;
      },
      { timeoutMs: 50_000 },
    );
  return { api, id, events, ended };
}

test("released work returns with its checkpoint, no attempt spent", async () => {
  const { ended, events, api, id } = await setup(async (work) => {
    if (work.checkpoint) return JSON.stringify([work.attempt, work.checkpoint]);
    await work.saveCheckpoint({ job: 7 });
    return work.release({ reason: "not now", delaySeconds: 0.2 });
  });
  const done = await ended();
  expect(JSON.parse(done.reply.parts[0].text)).toEqual([1, { job: 7 }]);
  await until(() => events.length === 4);
  expect(events.map(({ type }) => type)).toEqual(["leased", "released", "leased", "replied"]);
  const { body } = await api.events(id);
  expect(body.events.find((event: { status?: string }) => event.status === "released")).toMatchObject({
    reason: "not now",
  });
});

test("a checkpoint that is too large makes the handler's call fail", async () => {
  const { ended } = await setup(async (work) => {
    const refused = await work.saveCheckpoint({ text: "x".repeat(5000) }).catch((error) => error);
    return refused.code;
  });
  expect((await ended()).reply.parts).toEqual([{ text: "invalid_request" }]);
});

test("an agent may cancel its own delegation", async () => {
  const { ended, events } = await setup((work) => work.cancel("nobody is there"));
  expect(await ended()).toMatchObject({
    state: "canceled",
    error: { code: "canceled", message: "Canceled by agent:scout: nobody is there" },
  });
  await until(() => events.length > 1);
  expect(["canceled", "lost"]).toContain(events[1]?.type);
});
