/** The usage that a handler reports, with a real broker. */
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
  const got = async () => (await api.get(id)).body;
  const ended = () => until(async () => ((await got()).finished_at === null ? null : got()));
  return { api, id, events, got, ended };
}

test("reports are merged, shown while the work runs, and final with the reply", async () => {
  let go = () => {};
  const gone = new Promise<void>((resolve) => {
    go = resolve;
  });
  const { got, ended } = await setup(async (work) => {
    work.usage({ input_tokens: 5, model: "m-1" });
    await gone;
    work.usage({ output_tokens: 2 });
    work.usage({ input_tokens: 6 });
    return { state: "completed", usage: { cost: 0.5, currency: "USD" } };
  });
  await until(async () => (await got()).usage?.total.input_tokens === 5);
  expect((await got()).usage.total.complete).toBe(false);
  go();
  const sum = { input_tokens: 6, output_tokens: 2, cost: 0.5, currency: "USD", complete: true };
  expect((await ended()).usage).toEqual({ attempts: [{ attempt: 1, ...sum, model: "m-1" }], total: sum });
});

test("usage and progress that wait are sent together, before a question ends the lease", async () => {
  const { api, id, got } = await setup(async (work) => {
    work.progress("one");
    work.usage({ input_tokens: 1 });
    work.progress("two");
    work.usage({ input_tokens: 2 });
    return (await work.ask("which?")).text;
  });
  const { interrupt, usage } = await until(async () => {
    const now = await got();
    return now.interrupt && now;
  });
  expect(usage.total).toEqual({ input_tokens: 2, complete: false });
  await api.answer(id, interrupt.id, { text: "that" });
  await until(async () => (await got()).state === "completed");
  expect((await got()).usage.total).toEqual({ input_tokens: 4, complete: true });
});

test("a refused usage costs neither progress nor the reply, and is reported once", async () => {
  const { events, ended } = await setup(async (work) => {
    work.progress("one");
    work.usage({ input_tokens: 2 });
    await new Promise((resolve) => setTimeout(resolve, 0));
    work.usage({ input_tokens: -1 });
    work.progress("two");
    await work.saveCheckpoint({});
    return { state: "completed", text: "done", usage: { input_tokens: 1.5 } };
  });
  expect(await ended()).toMatchObject({ state: "completed", reply: { parts: [{ text: "done" }] } });
  await until(() => events.at(-1)?.type === "replied");
  const refused = events.filter(({ type }) => type === "usage_refused");
  expect(refused).toMatchObject([{ reason: expect.stringContaining("usage.input_tokens") }]);
});
