/** Servers of a Cluster whose clocks differ: the events of a shard are stamped by another clock than the subscriptions. */
import { expect, test } from "vitest";
import { client } from "../../support/broker.ts";
import { startReceiver } from "../../support/receiver.ts";
import { bodies, startSubscribed } from "../../support/subscribed.ts";
import { until } from "../../support/until.ts";

const HOUR = 3_600_000;

test.each([
  ["behind", -HOUR],
  ["ahead", HOUR],
])("the clock of a shard is %s", async (_, offset_ms) => {
  const { ann, alice, clock, subscribe, tick, another } = await startSubscribed();
  // What this gateway writes is stamped as by the clock of another server.
  const { gateway, url } = await another({ clock: { offset_ms } });
  const [api, caller] = [client(url), client(url, alice.token)];
  const ask = async () => {
    const { id } = (await caller.delegate("scout")).body;
    const [lease] = (await api.lease("scout")).body.leases;
    await api.interrupt(lease.lease_id, { text: "?", expires_in_seconds: 86_400 });
    return String(id);
  };
  const [early, late] = [await startReceiver(), await startReceiver()];
  const events = ["question"];
  await subscribe(alice, {
    events,
    deliver: [
      { kind: "webhook", url: early.url },
      { kind: "webhook", url: early.url, after_seconds: 600 },
    ],
  });
  await ask();
  // Only what happens from now on.
  await subscribe(ann, { events, deliver: [{ kind: "webhook", url: late.url }] });
  const second = await ask();
  // It would also send, by that clock, and there is one for this.
  await gateway.close({ idleGrace: false });
  await tick();
  const idsIn = ({ received }: typeof early) => bodies(received).map(({ delegation_id }) => delegation_id);
  await until(() => new Set(idsIn(early)).size === 2 && late.received.length > 0);
  expect(idsIn(late)).toEqual([second]);
  clock.offset_ms += 601_000;
  await tick();
  await until(() => early.received.length === 4);
  expect(idsIn(late)).toEqual([second]);
});
