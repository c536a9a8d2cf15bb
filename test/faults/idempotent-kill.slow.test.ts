import { expect, test } from "vitest";
import { client, startBroker } from "../support/broker.ts";
import { keysIn } from "../support/dump.ts";
import { startGatewayProcess } from "../support/gateway-process.ts";
import { checkHistory, eventsOf } from "../support/history.ts";
import { retryUntilAnswered } from "../support/retry.ts";
import { until } from "../support/until.ts";

const SUBMITS = 2_000;
const KEYS = 200;
const AT_ONCE = 100;
/** Both gateways are killed after this many answers. */
const KILLED_AT = 700;

test("2 000 submits over 200 keys through two gateways, killed and restarted: 200 delegations", async () => {
  // The test's own gateway only sweeps and reads; the submits go through the two that are killed.
  const broker = await startBroker({ sweepEveryMs: 100 });
  const api = client(broker.url);
  await api.agent("scout");
  const gateways = await Promise.all([startGatewayProcess(broker.db), startGatewayProcess(broker.db)]);
  const ports = gateways.map(({ port }) => port);

  const answers: { key: number; status: number; id: string }[] = [];
  let sent = 0;
  let failed = 0;
  const submit = async (n: number) => {
    const key = n % KEYS;
    const attempt = async (round: number) => {
      const via = client(`http://127.0.0.1:${ports[(n + round) % ports.length]}`);
      const headers = { "idempotency-key": `key-${key}` };
      return via.delegate("scout", { task: `task ${key}` }, headers).catch((error: unknown) => {
        failed += 1;
        throw error;
      });
    };
    let round = 0;
    const { status, body } = await retryUntilAnswered(() => attempt(round++), 300_000);
    answers.push({ key, status, id: body.id });
  };
  const line = async () => {
    while (sent < SUBMITS) await submit(sent++);
  };
  const load = Promise.all(Array.from({ length: AT_ONCE }, line));
  await until(() => answers.length >= KILLED_AT, { timeoutMs: 300_000, what: `${KILLED_AT} answers` });
  await Promise.all(gateways.map((gateway) => gateway.kill()));
  await Promise.all(ports.map((port) => startGatewayProcess(broker.db, { port })));
  await load;
  expect(failed).toBeGreaterThan(0);

  expect(answers).toHaveLength(SUBMITS);
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 202]));
  const ids = new Map(answers.map(({ key, id }) => [key, id]));
  for (const { key, id } of answers) expect(id).toBe(ids.get(key));
  expect(new Set(ids.values()).size).toBe(KEYS);
  // Accepted once; later submits were told so. For some keys the first answer was lost with its gateway.
  const accepted = answers.filter(({ status }) => status === 202).map(({ key }) => key);
  expect(new Set(accepted).size).toBe(accepted.length);

  const records = (await keysIn(broker.redis, "{errand:0}:d:dlg_*")).filter((key) => !/:d:.*:/.test(key));
  expect(records.map((key) => key.slice("{errand:0}:d:".length)).sort()).toEqual([...ids.values()].sort());

  // Each is leased once, also those whose gateway died before it made a ticket.
  const handed: string[] = [];
  await until(
    async () => {
      const { leases } = (await api.lease("scout", { wait_seconds: 1, max: 32 })).body;
      for (const lease of leases) {
        handed.push(lease.delegation.id);
        expect((await api.reply(lease.lease_id)).body.outcome).toBe("matched");
      }
      return handed.length >= KEYS;
    },
    { what: "the last delegation" },
  );
  expect(handed.sort()).toEqual([...ids.values()].sort());
  for (const id of handed) checkHistory(await eventsOf(api, id), "finished");
}, 600_000);
