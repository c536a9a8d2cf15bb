/** The default id of a worker. */
import { expect, test } from "vitest";
import { Admin } from "../../src/client/admin.ts";
import { Agent } from "../../src/client/agent.ts";
import { leaseRequestSchema } from "../../src/schema/lease.ts";
import { OPERATOR, startBroker } from "../support/broker.ts";
import { until } from "../support/until.ts";

test("two workers of one agent are listed as two, each by its own id", async () => {
  const { url } = await startBroker();
  const admin = new Admin({ url, token: OPERATOR });
  await admin.putAgent("scout");
  const workers = [1, 2].map(() => new Agent({ url, token: OPERATOR, agent: "scout" }, () => "done"));
  const running = workers.map((worker) => worker.run());
  const ids = async () => (await admin.listWorkers("scout")).map(({ id }) => id).sort();
  await until(async () => (await ids()).length === 2, { what: "two workers" });
  expect(await ids()).toEqual(workers.map(({ workerId }) => workerId).sort());
  await Promise.all(workers.map((worker) => worker.stop()));
  await Promise.all(running);
  const [first] = await ids();
  expect(first).toContain(`-${process.pid}-`);
});

test.each([
  [
    "a host name of any length and alphabet",
    { pid: 7, getBuiltinModule: () => ({ hostname: () => "h ö".repeat(90) }) },
  ],
  ["a runtime without such names", undefined],
])("%s makes a valid worker id", (_what, surroundings) => {
  const real = globalThis.process;
  Reflect.set(globalThis, "process", surroundings);
  try {
    const ids = [1, 2].map(() => new Agent({ url: "http://127.0.0.1:9", agent: "scout" }, () => "").workerId);
    expect(new Set(ids).size).toBe(2);
    for (const worker_id of ids) expect(leaseRequestSchema.parse({ worker_id })).toMatchObject({ worker_id });
  } finally {
    Reflect.set(globalThis, "process", real);
  }
});
