/** The usage that a handler reports, with a real broker. */

import { expect, onTestFinished, test, vi } from "vitest";
import { Agent, Delegator } from "../../../src/index.ts";
import { client, OPERATOR, startBroker } from "../../support/broker.ts";
import { handled } from "../../support/handled.ts";
import { until } from "../../support/until.ts";

test("reports are merged, shown while the work runs, and final with the reply", async () => {
  let go = () => {};
  const gone = new Promise<void>((resolve) => {
    go = resolve;
  });
  const { got, ended } = await handled(async (work) => {
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
  const { api, id, got } = await handled(async (work) => {
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
  const { events, ended } = await handled(async (work) => {
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

test("without a log, a refused usage is printed: it no longer counts towards a budget", async () => {
  const printed = vi.spyOn(console, "error").mockImplementation(() => undefined);
  onTestFinished(() => printed.mockRestore());
  const { url } = await startBroker();
  await client(url).agent("scout");
  const agent = new Agent({ url, token: OPERATOR, agent: "scout" }, async (work) => {
    work.usage({ cost: 0.5, currency: "XYZ" });
    return "done";
  });
  const run = agent.run();
  const delegator = new Delegator({ url, token: OPERATOR });
  const { id } = await delegator.delegate({ target: "scout", task: "look" });
  expect(await delegator.wait(id)).toMatchObject({ state: "completed" });
  await agent.stop();
  await run;
  const [first] = printed.mock.calls;
  expect(first?.join(" ")).toMatch(
    new RegExp(`^errand: no more usage of ${id} is reported: usage\\.currency`),
  );
});
