/** The library's schedules against a real gateway. */
import { expect, test } from "vitest";
import { ErrandApiError, Schedules } from "../../../src/index.ts";
import { as, client, OPERATOR, startBroker } from "../../support/broker.ts";

test("creates, changes, runs and deletes schedules; what is wrong says what is meant", async () => {
  const { url } = await startBroker();
  await client(url).agent("scout");
  const { token } = await as(url, "caller:alice");
  const schedules = new Schedules({ url, token });
  const delegation = { target: "scout", task: "tidy up" };
  const made = await schedules.create({ every_seconds: 3600, delegation }, { idempotencyKey: "k" });
  expect(await schedules.create({ every_seconds: 3600, delegation }, { idempotencyKey: "k" })).toEqual(made);
  expect(await schedules.pause(made.id)).toMatchObject({ state: "paused", next: [] });
  expect(await schedules.resume(made.id)).toMatchObject({ state: "active" });
  const run = await schedules.run(made.id);
  expect(await schedules.runs(made.id)).toEqual([run]);
  expect(await schedules.patch(made.id, { cron: "0 9 * * *", overlap: "skip" })).toMatchObject({
    cron: "0 9 * * *",
    time_zone: "UTC",
    overlap: "skip",
  });
  expect(await schedules.list()).toEqual([await schedules.get(made.id)]);
  const wrong = await schedules.create({ cron: "@daily", delegation }).catch((error: unknown) => error);
  expect(wrong).toBeInstanceOf(ErrandApiError);
  expect(wrong).toMatchObject({ code: "invalid_request", details: { suggestion: { cron: "0 0 * * *" } } });
  await schedules.delete(made.id);
  expect(await new Schedules({ url, token: OPERATOR }).list()).toEqual([]);
  await expect(schedules.get(made.id)).rejects.toMatchObject({ code: "not_found" });
});
