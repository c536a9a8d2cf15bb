import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { startBroker } from "../support/broker.ts";
import { entryFields } from "../support/entry.ts";
import { until } from "../support/until.ts";

const EVENTS = 1_000;
const EVENT_CHARS = 8_000;

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

test("a gateway retains nothing of delivered events", async () => {
  const { gateway, redis } = await startBroker();
  let seen = 0;
  const push = () => {
    seen += 1;
  };
  gateway.broker.feed.subscribe({ kind: "all" }, { push, gap: () => {} });
  const more = `"note":"${"x".repeat(EVENT_CHARS)}"`;
  const round = async () => {
    const expected = seen + EVENTS;
    for (let n = 0; n < EVENTS; n += 1) {
      const delegation_id = `dlg_0_${String(expected + n).padStart(26, "0")}`;
      await redis.xadd("{errand:0}:events", "MAXLEN", EVENTS, "*", ...entryFields({ delegation_id, more }));
    }
    await until(() => seen === expected);
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  await round();
  const grown = (await round()) - (await round());
  expect(Math.abs(grown)).toBeLessThan((EVENTS * EVENT_CHARS) / 4);
});
