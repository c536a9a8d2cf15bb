/** Kills a gateway before each of its commands to Redis, one after the other, in every verb that writes. */
import { describe, expect, test } from "vitest";
import type { TestBroker } from "../support/broker.ts";
import { type Api, crashWalk, type Verb } from "../support/crash-walk.ts";

const nothing = async () => ({ id: "", lease: "" });
const submitted = async (api: Api) => ({ id: String((await api.delegate("scout")).body.id), lease: "" });
const leased = async (api: Api) => {
  const { id } = await submitted(api);
  const { body } = await api.lease("scout");
  expect(body.leases[0].delegation.id).toBe(id);
  return { id, lease: String(body.leases[0].lease_id) };
};

/** Its lease has lapsed, so the next call of its holder reclaims it. */
const lapsed = async (api: Api, { clock, gateway }: TestBroker) => {
  const made = await leased(api);
  clock.offset_ms = 61_000;
  await gateway.sweep.tick();
  expect((await api.get(made.id)).body).toMatchObject({ state: "submitted", attempt: 2 });
  return made;
};

/** Its question is held. */
const held = async (api: Api) => {
  const made = await leased(api);
  const { body } = await api.interrupt(made.lease, HELD);
  expect(body).toHaveProperty("held_until");
  return { ...made, question: String(body.interrupt_id) };
};
const HELD = { text: "May I?", request_id: "may", hold: true };

const VERBS: Record<string, Verb> = {
  delegate: { waits: true, prepare: nothing, act: (api) => api.delegate("scout") },
  lease: { prepare: submitted, act: (api) => api.lease("scout", { wait_seconds: 1 }) },
  progress: { prepare: leased, act: (api, { lease }) => api.heartbeat(lease, { progress: { done: 1 } }) },
  release: { waits: true, prepare: leased, act: (api, { lease }) => api.release(lease) },
  "late reply": { prepare: lapsed, act: (api, { lease }) => api.reply(lease) },
  complete: { prepare: leased, act: (api, { lease }) => api.reply(lease) },
  "reply with next": {
    prepare: leased,
    act: (api, { lease }) => api.reply(lease, { next: { wait_seconds: 0 } }),
  },
  retry: {
    prepare: leased,
    act: (api, { lease }) =>
      api.reply(lease, {
        state: "failed",
        text: "x",
        error: { code: "busy", message: "x", retryable: true },
      }),
  },
  "hold a question": { prepare: leased, act: (api, { lease }) => api.interrupt(lease, HELD) },
  "answer a held question": {
    prepare: held,
    act: (api, { id, question = "" }) => api.answer(id, question, { text: "yes" }),
  },
  "park a held question": {
    prepare: held,
    act: (api, { lease }) => api.interrupt(lease, { ...HELD, hold: false }),
  },
  "cancel waiting": { prepare: submitted, act: (api, { id }) => api.cancel(id) },
  "cancel working": { prepare: leased, act: (api, { id }) => api.cancel(id) },
};

describe.each(Object.entries(VERBS))("%s", (_name, verb) => {
  test("killed before any command: accepted work is not lost, nothing hangs, no event appears twice", async () => {
    await crashWalk(verb);
  }, 240_000);
});
