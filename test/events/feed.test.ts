import { expect, test } from "vitest";
import { startBroker } from "../support/broker.ts";
import { deliveredBy } from "../support/delivered.ts";
import { entryFields } from "../support/entry.ts";
import { until } from "../support/until.ts";

const STREAM = "{errand:0}:events";

/** Writes an event for each delegation and waits until the feed has delivered them; returns their stream ids. */
async function setup() {
  const { redis, gateway } = await startBroker();
  const { feed } = gateway.broker;
  const delivered = deliveredBy(feed);
  const deliver = async (ids: readonly string[]): Promise<string[]> => {
    const written: string[] = [];
    // Fewer at once than one read returns, so no subscriber is notified of a gap.
    for (let n = 0; n < ids.length; n += 400) {
      const batch = redis.pipeline();
      for (const delegation_id of ids.slice(n, n + 400)) {
        batch.xadd(STREAM, "*", ...entryFields({ delegation_id }));
      }
      written.push(...((await batch.exec()) ?? []).map(([, id]) => String(id)));
      await until(() => delivered.has(written.at(-1) ?? ""));
    }
    return written;
  };
  return { feed, deliver };
}

const many = (name: string) => Array.from({ length: 5_000 }, (_, n) => `dlg_0_${name}${n}`);

test("the feed knows which delegations had events lately, and assumes an event for those that it forgot", async () => {
  const { feed, deliver } = await setup();
  const [before = ""] = await deliver(["dlg_0_before"]);
  const [first = ""] = await deliver(["dlg_0_one"]);
  expect(feed.mayHaveDelivered(0, "dlg_0_one", before)).toBe(true);
  expect(feed.mayHaveDelivered(0, "dlg_0_one", first)).toBe(false);
  expect(feed.mayHaveDelivered(0, "dlg_0_never", before)).toBe(false);

  // One generation later it is still known.
  const halves = await deliver(many("a"));
  expect(feed.mayHaveDelivered(0, "dlg_0_one", before)).toBe(true);
  expect(feed.mayHaveDelivered(0, "dlg_0_one", first)).toBe(false);
  expect(feed.mayHaveDelivered(0, "dlg_0_never", before)).toBe(false);
  const [second = ""] = await deliver(["dlg_0_one"]);
  expect(feed.mayHaveDelivered(0, "dlg_0_one", first)).toBe(true);

  // Two generations later, any delegation may have had an event at that time.
  await deliver(many("b"));
  const last = (await deliver(many("c"))).at(-1) ?? "";
  expect(feed.mayHaveDelivered(0, "dlg_0_never", halves.at(-1) ?? "")).toBe(true);
  expect(feed.mayHaveDelivered(0, "dlg_0_one", first)).toBe(true);
  expect(feed.mayHaveDelivered(0, "dlg_0_one", last)).toBe(false);
  expect(feed.mayHaveDelivered(0, "dlg_0_c4999", second)).toBe(true);
  expect(feed.mayHaveDelivered(0, "dlg_0_c4999", last)).toBe(false);
});
