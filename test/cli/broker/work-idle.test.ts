/** `errand work --exit-when-idle`: what a job runs that is started when work waits. */
import { expect, test } from "vitest";
import { setup } from "./cli.ts";

test("works on what waits and exits with 0; with --once on one; with nothing to do on none", async () => {
  const { run, api } = await setup();
  await api.agent("scout");
  const work = (...options: string[]) =>
    run(["work", "--agent", "scout", ...options, "--exit-when-idle", "--", "cat"]);
  expect((await work("--once")).code).toBe(0);
  const ids: string[] = [];
  for (let n = 0; n < 3; n += 1) ids.push(String((await api.delegate("scout")).body.id));
  const states = () => Promise.all(ids.map(async (id) => (await api.get(id)).body.state));
  expect((await work("--once")).code).toBe(0);
  expect((await states()).filter((state) => state === "completed")).toHaveLength(1);
  expect((await work()).code).toBe(0);
  expect(await states()).toEqual(["completed", "completed", "completed"]);
  const wrong = await run(["work", "--agent", "scout", "--exit-when-idle", "soon", "--", "cat"]);
  expect([wrong.code, wrong.stderr]).toEqual([64, expect.stringContaining("It must be a duration")]);
});
