/**
 * Data that an older build wrote is read and continued, with the answers of that build. record.mjs recorded it.
 * Limit: it has nothing that waits for a time of day (delayed tickets, callbacks).
 */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { z } from "zod";
import { client, OPERATOR, request, startBroker } from "../support/broker.ts";

const recordSchema = z.object({
  /** When it was recorded, ms. */
  at: z.number(),
  ids: z.record(z.string(), z.string()),
  leases: z.record(z.string(), z.string()),
  /** Path → what GET answered. */
  answers: z.record(z.string(), z.unknown()),
});
const DAY_MS = 86_400_000;

const bytesSchema = z.object({ base64: z.string() }).transform(({ base64 }) => Buffer.from(base64, "base64"));
const commandSchema = z.tuple([z.string()], z.union([z.string(), bytesSchema]));

function recorded() {
  const [first = "", ...rest] = readFileSync(new URL("./data.jsonl", import.meta.url), "utf8")
    .trim()
    .split("\n");
  return {
    ...recordSchema.parse(JSON.parse(first)),
    commands: rest.map((line) => commandSchema.parse(JSON.parse(line))),
  };
}

async function restore() {
  const { commands, ...record } = recorded();
  const { gateway, clock, redis, another } = await startBroker();
  await gateway.close();
  await redis.flushdb();
  for (const [name, ...args] of commands) await redis.call(name, ...args);
  // The broker's clock continues at the time of the recording. Redis trims streams by its own clock, so the retention
  // covers the age of the recording.
  const age = Date.now() - record.at;
  clock.offset_ms = -age;
  const { url } = await another({ retentionMs: age + DAY_MS });
  return { ...record, url, api: client(url) };
}

test("every delegation, event and list is answered as by the older build", async () => {
  const { url, answers } = await restore();
  for (const [path, expected] of Object.entries(answers)) {
    const { status, body } = await request(url, "GET", path, {
      token: OPERATOR,
      headers: { accept: "application/json" },
    });
    expect({ path, status, body }).toEqual({ path, status: 200, body: expected });
  }
});

test("work in every state continues", async () => {
  const { url, ids, leases, api } = await restore();
  const id = (name: string) => ids[name] ?? "";
  const state = async (name: string) => (await api.get(id(name))).body.state;

  // The lease is still valid: its heartbeat gets the unseen follow-up, and its reply completes the delegation.
  const beat = await api.heartbeat(leases.works ?? "");
  expect(beat.body.messages).toMatchObject([{ parts: [{ text: "hurry" }] }]);
  expect((await api.reply(leases.works ?? "")).status).toBe(200);
  const { body: done } = await api.get(id("works"));
  expect(done).toMatchObject({ state: "completed", artifacts: [{ artifactId: "draft" }] });

  // An open question is answered; answered work is leased with its answer.
  const { interrupt } = (await api.get(id("asks"))).body;
  expect((await api.answer(id("asks"), interrupt.id, { text: "a" })).status).toBe(200);
  for (const agent of ["asks", "asked"]) {
    const [lease] = (await api.lease(agent)).body.leases;
    expect(lease).toMatchObject({ attempt: 1, delegation: { id: id(agent) } });
    expect((await api.reply(lease.lease_id)).status).toBe(200);
    expect(await state(agent)).toBe("completed");
  }

  // Queued work keeps its order; a paused agent gets none until it is resumed.
  const first = (await api.lease("queue")).body.leases[0];
  const second = (await api.lease("queue")).body.leases[0];
  expect([first.delegation.id, second.delegation.id]).toEqual([id("child"), id("keyed")]);
  expect((await api.lease("paused", { wait_seconds: 0 })).body.leases).toEqual([]);
  await api.call("POST", "/v1/agents/paused/resume", {});
  expect((await api.lease("paused")).body.leases).toMatchObject([{ delegation: { id: id("paused") } }]);

  // The idempotency key still finds its delegation, a failure can be redriven, and finished work stays finished.
  const key = { "idempotency-key": "one" };
  const again = await api.delegate("queue", { task: "for queue", priority: 2 }, key);
  expect([again.status, again.body.id]).toEqual([200, id("keyed")]);
  expect((await api.redrive(id("fails"))).status).toBeLessThan(300);
  expect((await api.reply(leases.works ?? "", { text: "later" })).status).toBe(409);
  expect(await state("works")).toBe("completed");
  const { body: events } = await request(url, "GET", `/v1/delegations/${id("works")}/events?after=0`, {
    headers: { accept: "application/json" },
  });
  const seqs = events.events.map(({ seq }: { seq: number }) => seq);
  expect(seqs).toEqual(seqs.map((_: number, at: number) => at + 1));
});
