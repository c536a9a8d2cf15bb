/** `errand work` whose command fails at once, beside a healthy worker. */
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { Agent } from "../../../src/client/agent.ts";
import { OPERATOR } from "../../support/broker.ts";
import { until } from "../../support/until.ts";
import { setup } from "./cli.ts";

const TASKS = 20;
const LIMITED = `#!/bin/sh
echo '{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"resets 1pm"}'
`;

test.each([
  ["fails with status 1", ["--", "sh", "-c", "exit 1"], 3, 0],
  ["fails with status 75", ["--", "sh", "-c", "exit 75"], 3, 0],
  ["has no program", ["--", "sh", "-c", "/nonexistent/agent"], 1, 1],
  ["is at the limit of its provider", ["--preset", "claude", "--ask", "none"], 1, 1],
])("a worker whose command %s leaves the queue to a healthy one", async (_what, words, leases, returned) => {
  const { api, dir, start, url } = await setup();
  writeFileSync(join(dir, "claude"), LIMITED);
  chmodSync(join(dir, "claude"), 0o755);
  await api.agent("scout", { backoff: { initial_ms: 10 } });
  const answers = await Promise.all(Array.from({ length: TASKS }, () => api.delegate("scout")));
  const ids: string[] = answers.map(({ body }) => body.id);
  const bad = start(["work", "--agent", "scout", ...words], { env: { PATH: `${dir}:${process.env.PATH}` } });
  await until(() => bad.stderr().includes("paused: "), { what: "a pause" });
  const taken = (bad.stderr().match(/ leased /g) ?? []).length;
  expect(taken).toBe(leases);

  const good = new Agent({ url, token: OPERATOR, agent: "scout", concurrency: 4 }, () => "done");
  const running = good.run();
  onTestFinished(async () => {
    await good.stop();
    await running;
  });
  const all = async () => (await Promise.all(ids.map((id) => api.get(id)))).map(({ body }) => body);
  await until(
    async () => (await all()).filter(({ state }) => state === "completed").length >= TASKS - returned,
  );
  // What was returned waits some seconds, and has all of its attempts.
  for (const one of await all())
    if (one.state !== "completed") expect(one).toMatchObject({ state: "submitted", attempt: 1 });
});
