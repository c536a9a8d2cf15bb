/**
 * The table of outages in docs/reliability.md, as far as it is the broker's: a gateway is killed, is away for that long by the
 * broker's clock, and another one takes over. What workers do meanwhile is in test/lease-holder.
 */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { client, startBroker } from "../support/broker.ts";
import { startGatewayProcess } from "../support/gateway-process.ts";
import { checkHistory, eventsOf } from "../support/history.ts";
import { outage, passes } from "../support/outage.ts";
import { openStream } from "../support/sse.ts";
import { until } from "../support/until.ts";

/** Longer than the lease, which is 60 s: then each lease gets grace. */
const OUTAGES = [
  { name: "10 s", seconds: 10, isLong: false, isQuestionOver: false },
  { name: "70 s", seconds: 70, isLong: true, isQuestionOver: false },
  { name: "10 min", seconds: 600, isLong: true, isQuestionOver: true },
] as const;

async function setup() {
  const broker = await startBroker({ outageMs: 9_000 });
  const victim = await startGatewayProcess(broker.db, { sweepEveryMs: 50 });
  const before = client(victim.url);
  const after = client(broker.url);
  await before.agent("scout", { limits: { max_attempts: 1 } });
  await before.agent("idle");
  const leased = async () => {
    const id = String((await before.delegate("scout")).body.id);
    const { leases } = (await before.lease("scout", { confirm_within_seconds: 50 })).body;
    expect(leases[0].delegation.id).toBe(id);
    expect((await before.heartbeat(leases[0].lease_id)).status).toBe(200);
    return { id, lease: String(leases[0].lease_id) };
  };
  return { broker, victim, before, after, leased };
}

test.each(OUTAGES)("an outage of $name takes no work away", async ({ seconds, isLong, isQuestionOver }) => {
  const { broker, victim, before, after, leased } = await setup();
  const [running, finished, asked, dead] = [await leased(), await leased(), await leased(), await leased()];
  const part = { artifactId: "a", parts: [{ text: "half" }] };
  await before.call("POST", `/v1/leases/${finished.lease}/artifacts`, { artifact: part });
  const { interrupt_id } = (await before.interrupt(asked.lease, { text: "which?", expires_in_seconds: 300 }))
    .body;
  const queued = String((await before.delegate("scout")).body.id);
  const reader = await openStream(`${victim.url}/v1/delegations/${running.id}/events`);
  const newest = (await eventsOf(before, running.id)).at(-1);
  await until(() => reader.events.some(({ id }) => id === newest?.id));
  const parked = before.lease("idle", { wait_seconds: 50 }).catch(() => null);
  await until(async () => (await after.call("GET", "/v1/agents/idle")).body.presence.polls !== 0);

  await victim.kill();
  await outage(broker, seconds);
  await broker.gateway.sweep.tick();

  // A parked poll ends with the connection; nothing was lost with it.
  expect(await parked).toBeNull();
  const { id: late } = (await after.delegate("idle")).body;
  expect((await after.lease("idle")).body.leases).toMatchObject([{ delegation: { id: late } }]);
  // An idle worker gets what was accepted before.
  expect((await after.lease("scout")).body.leases).toMatchObject([
    { attempt: 1, delegation: { id: queued } },
  ]);

  // A running command and a finished result.
  const away = async (id: string) =>
    (await eventsOf(after, id)).filter(({ status }) => status === "broker_away");
  for (const { id } of [running, finished, dead]) {
    expect((await after.get(id)).body).toMatchObject({ state: "working", attempt: 1 });
    expect(await away(id)).toHaveLength(isLong ? 1 : 0);
  }
  expect((await after.heartbeat(running.lease, { progress: { done: 1 } })).status).toBe(200);
  expect((await after.reply(finished.lease)).body.outcome).toBe("matched");
  expect((await after.get(finished.id)).body).toMatchObject({
    state: "completed",
    attempt: 1,
    artifacts: [part],
  });

  // The deadline of a question does not wait.
  const answer = await after.answer(asked.id, interrupt_id, { text: "this" });
  expect(answer.status).toBe(isQuestionOver ? 409 : 200);
  if (isQuestionOver) expect((await after.get(asked.id)).body.error.code).toBe("interrupt_expired");

  // A reader resumes without a gap.
  const last = reader.events.findLast(({ id }) => id !== "")?.id ?? "";
  const resumed = await openStream(`${broker.url}/v1/delegations/${running.id}/events`, {
    lastEventId: last,
  });
  await until(() => resumed.events.some(({ data }) => data.status === "progress"));
  expect(resumed.events.map(({ data }) => data.status)).toEqual([
    ...(isLong ? ["broker_away"] : []),
    "progress",
  ]);
  resumed.close();

  // A worker that is dead loses its lease, one period later. The request above may have taken long, so half of it is a bound.
  await passes(broker, 30);
  if (isLong) expect((await after.get(dead.id)).body.state).toBe("working");
  await passes(broker, 35);
  expect((await after.get(dead.id)).body.error.code).toBe("attempts_exhausted");
  checkHistory(await eventsOf(after, dead.id), "finished");
});

test("the page has a row for each of these outages", () => {
  const page = readFileSync(new URL("../../docs/reliability.md", import.meta.url), "utf8");
  const head = /^\| when the broker is back \|(.*)\|$/m.exec(page)?.[1] ?? "";
  expect(head.split("|").map((name) => name.trim())).toEqual(OUTAGES.map(({ name }) => name));
});
