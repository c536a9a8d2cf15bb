/** The special results of a handler, and the checkpoint for its next run, with a real broker. */

import { expect, test } from "vitest";
import { handled } from "../../support/handled.ts";
import { until } from "../../support/until.ts";

test("released work returns with its checkpoint, no attempt spent", async () => {
  const { ended, events, api, id } = await handled(async (work) => {
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
  const { ended } = await handled(async (work) => {
    const refused = await work.saveCheckpoint({ text: "x".repeat(5000) }).catch((error) => error);
    return refused.code;
  });
  expect((await ended()).reply.parts).toEqual([{ text: "invalid_request" }]);
});

test("an agent may cancel its own delegation", async () => {
  const { ended, events } = await handled((work) => work.cancel("nobody is there"));
  expect(await ended()).toMatchObject({
    state: "canceled",
    error: { code: "canceled", message: "Canceled by agent:scout: nobody is there" },
  });
  await until(() => events.length > 1);
  expect(["canceled", "lost"]).toContain(events[1]?.type);
});
