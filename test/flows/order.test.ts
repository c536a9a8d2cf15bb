/** The order in which work is leased, and that work which always fails does not delay other work. */
import { expect, test } from "vitest";
import { as, client, startBroker } from "../support/broker.ts";
import { checkHistory, eventsOf } from "../support/history.ts";
import { until } from "../support/until.ts";

async function setup(spec: unknown = {}) {
  const broker = await startBroker();
  const api = client(broker.url);
  await api.agent("scout", spec);
  const alice = await as(broker.url, "caller:alice");
  const scout = await as(broker.url, "agent:scout");
  const send = async (task: string, priority = 5) =>
    String((await alice.delegate("scout", { task, priority })).body.id);
  /** Leases everything that can be leased now; the lease id and task of each, in order. */
  const take = async (max = 32): Promise<[lease: string, task: string][]> =>
    (await scout.lease("scout", { wait_seconds: 0, max })).body.leases.map(
      (one: { lease_id: string; delegation: { task_preview: string } }) => [
        one.lease_id,
        one.delegation.task_preview,
      ],
    );
  return { ...broker, api, alice, scout, send, take };
}

const tasks = (leases: readonly (readonly [string, string])[]) => leases.map(([, task]) => task);

test("by priority, then first in, first out; returned work comes before new work of its priority", async () => {
  const { alice, scout, send, take } = await setup();
  const ids = new Map<string, string>();
  for (let n = 0; n < 20; n += 1) ids.set(`${n % 10}.${n}`, await send(`${n % 10}.${n}`, n % 10));
  const leases = await take();
  expect(tasks(leases)).toEqual(
    [9, 8, 7, 6, 5, 4, 3, 2, 1, 0].flatMap((p) => [`${p}.${p}`, `${p}.${p + 10}`]),
  );

  const leaseOf = (task: string) => leases.find((lease) => lease[1] === task)?.[0] ?? "";
  await send("5.new", 5);
  await send("6.new", 6);
  const { interrupt_id } = (await scout.interrupt(leaseOf("5.15"), { text: "Which?" })).body;
  await scout.release(leaseOf("5.5"));
  await alice.answer(ids.get("5.15") ?? "", interrupt_id, { text: "that" });
  await scout.release(leaseOf("4.4"));
  await send("9.new", 9);
  expect(tasks(await take())).toEqual(["9.new", "6.new", "5.5", "5.15", "5.new", "4.4"]);
});

const OTHERS = Array.from({ length: 40 }, (_, n) => `task ${n}`);

test.each(["fails", "crashes"])(
  "a task that always %s gets exactly its attempts, and other tasks get theirs at once",
  { timeout: 120_000 },
  async (how) => {
    const limits = { max_attempts: 4, lease_seconds: 20 };
    const { api, scout, send, take, clock, gateway } = await setup({
      limits,
      backoff: { initial_ms: 20_000, jitter: 0 },
    });
    const poison = await send("poison", 9);
    for (const task of OTHERS) await send(task);
    const seen: string[] = [];
    const isOver = async () => (await api.get(poison)).body.state === "failed";
    await until(
      async () => {
        for (const [lease, task] of await take(4)) {
          seen.push(task);
          const later = { code: "broken", message: "again", retryable: true };
          if (task !== "poison") await scout.reply(lease);
          else if (how === "fails")
            await scout.reply(lease, { state: "failed", text: undefined, error: later });
        }
        // Past the lease, the backoff, and the ticket check of a ticket that only this clock delays.
        if (seen.length > OTHERS.length) clock.offset_ms += 30_000;
        await gateway.sweep.tick();
        return isOver();
      },
      { what: "the end of the poison task" },
    );
    expect(seen.filter((task) => task === "poison")).toHaveLength(4);
    // Between its first and second attempt all others had their turn.
    expect(seen.slice(0, OTHERS.length + 1)).toEqual(["poison", ...OTHERS]);
    const { error, attempt } = (await api.get(poison)).body;
    expect([error.code, attempt]).toEqual([how === "fails" ? "broken" : "attempts_exhausted", 4]);
    checkHistory(await eventsOf(api, poison), "finished");
  },
);

test("a task that is always released backs off, and then other tasks have their turn", async () => {
  const { api, scout, send, take } = await setup();
  const poison = await send("poison", 9);
  for (const task of OTHERS) await send(task);
  const seen: string[] = [];
  for (let leases = await take(1); leases.length > 0; leases = await take(1)) {
    for (const [lease, task] of leases) {
      seen.push(task);
      if (task === "poison") await scout.release(lease, { reason: "not now" });
      else await scout.reply(lease);
    }
    // Its first backoff is a second; on a slow machine it may return before the last of the others.
    if (seen.length > OTHERS.length + 20) break;
  }
  const isPoison = (task: string) => task === "poison";
  // Ten releases are free; the eleventh backs off.
  expect(seen.slice(0, 12)).toEqual([...Array<string>(11).fill("poison"), "task 0"]);
  expect(seen.filter((task) => !isPoison(task))).toEqual(OTHERS);
  expect((await api.get(poison)).body).toMatchObject({ attempt: 1, error: null });
  const events = await eventsOf(api, poison);
  const pauses = events.flatMap((event) =>
    event.status === "released" ? [event.retry_at !== undefined] : [],
  );
  expect(pauses.slice(0, 11)).toEqual([...Array<boolean>(10).fill(false), true]);
});

test("work that is not leased in time fails with not_picked_up; once leased, it can no longer", async () => {
  const { api, alice, scout, take, clock, gateway } = await setup();
  const within = { start_within_seconds: 10 };
  const early = (await alice.delegate("scout", { ...within, task: "early" })).body.id;
  const [lease] = await take(1);
  await scout.release(lease?.[0] ?? "", { delay_seconds: 60 });
  const late = (await alice.delegate("scout", within)).body.id;
  const delayed = (await alice.delegate("scout", { ...within, delay_seconds: 5, task: "delayed" })).body.id;
  const waiting = alice.get(late, "?wait_seconds=10");
  clock.offset_ms = 10_500;
  await gateway.sweep.tick();
  const { state, error } = (await waiting).body;
  expect([state, error.code, error.category]).toEqual(["failed", "not_picked_up", "TIMEOUT"]);
  checkHistory(await eventsOf(api, late), "finished");
  // The time to start begins when the work may start.
  for (const id of [early, delayed]) expect((await api.get(id)).body.state).toBe("submitted");
  expect(tasks(await take())).not.toContain("do it");
  clock.offset_ms = 15_500;
  await gateway.sweep.tick();
  expect((await api.get(early)).body.state).toBe("submitted");
});
