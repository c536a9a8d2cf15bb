/**
 * Sends valid, nearly valid and hostile requests, made from the schemas of the APIs: every answer is one of the
 * contract, a refused request writes nothing, and the gateway keeps working. `npm run prove -- fuzz --runs 20000` runs
 * longer.
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { mutation, toWire, type Wire } from "./mutations.ts";
import { asks } from "./requests.ts";
import { fault, isPassing, isRefused, openWorld } from "./world.ts";

const { FUZZ_RUNS, FUZZ_SEED, FUZZ_PATH } = process.env;
const RUNS = Number(FUZZ_RUNS ?? 500);
const SEED = Number(FUZZ_SEED ?? 20_261_122);
const RENEW_EVERY = 40;
/** CPU time of this process, which runs the test and the gateway: shows a hang, and not a busy machine. */
const MOST_CPU_MS = 2_000;
const MOST_GROWTH_MB = 96;

setFlagsFromString("--expose-gc");
const collect: () => void = runInNewContext("gc");

function heapMb(): number {
  collect();
  return process.memoryUsage().heapUsed / 1_048_576;
}

const curl = ({ method, path, headers, bytes }: Wire): string =>
  [
    `${method} ${path}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value.slice(0, 300)}`),
    "",
    bytes === undefined ? "" : JSON.stringify(bytes.toString("latin1").slice(0, 3_000)),
  ].join("\n");

test(`${RUNS} requests are answered according to the contract`, {
  timeout: 300_000 + RUNS * 1_000,
}, async () => {
  const world = await openWorld();
  const counts = new Map<string, number>();
  let asked = 0;
  let heapBefore = 0;
  const one = fc.record({
    ask: asks,
    mutations: fc.oneof(
      { weight: 1, arbitrary: fc.constant([]) },
      { weight: 3, arbitrary: fc.array(mutation, { minLength: 1, maxLength: 2 }) },
    ),
    by: fc.nat({ max: world.tokens.length - 1 }),
  });
  const answers = fc.asyncProperty(one, async ({ ask, mutations, by }) => {
    asked += 1;
    if (asked % RENEW_EVERY === 0) await world.renew();
    if (asked === Math.floor(RUNS / 3)) heapBefore = heapMb();
    const wire = toWire(ask, mutations, world.fill);
    await world.changes();
    const startedAt = process.cpuUsage();
    const given = await world.send(wire, world.tokens[by]);
    const { user } = process.cpuUsage(startedAt);
    const failed = (what: string) =>
      new Error(`${what}\n${curl(wire)}\n\n${given.status} ${given.text.slice(0, 1_000)}`);
    const wrong = fault(ask.api, given);
    if (wrong !== null) throw failed(wrong);
    if (user / 1_000 > MOST_CPU_MS) throw failed(`it took ${user / 1_000} ms of CPU`);
    const refused = isRefused(given);
    const kind = `${ask.api} ${given.status === 0 ? "held" : refused ? "refused" : "taken"}`;
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
    if (!refused || isPassing(given)) return;
    if ((await world.changes()).length === 0) return;
    // An earlier request may still have been in progress and written it: then a second try writes nothing.
    const again = await world.send(wire, world.tokens[by]);
    const changes = await world.changes();
    if (isRefused(again) && changes.length > 0) throw failed(`refused, but written: ${changes.join(", ")}`);
  });
  await fc.assert(answers, {
    numRuns: RUNS,
    seed: SEED,
    ...(FUZZ_PATH !== undefined && { path: FUZZ_PATH, endOnFailure: true }),
  });
  expect(world.log.filter((line) => /internal error|uncaught/i.test(line))).toEqual([]);
  expect((await fetch(`${world.url}/readyz`)).status).toBe(200);
  if (RUNS >= 500 && FUZZ_PATH === undefined) {
    for (const api of ["rest", "rpc", "a2a-rest", "mcp", "ag-ui"]) {
      for (const end of ["taken", "refused"])
        expect([api, end, counts.get(`${api} ${end}`) ?? 0]).not.toContain(0);
    }
    expect(heapMb() - heapBefore).toBeLessThan(MOST_GROWTH_MB);
  }
  if (FUZZ_RUNS !== undefined)
    process.stdout.write(`${JSON.stringify(Object.fromEntries([...counts].sort()))}\n`);
});
