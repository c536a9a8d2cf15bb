/** How soon a worker returns to a broker that was unavailable. */
import { expect, test } from "vitest";
import { localError } from "../../src/client/errors.ts";
import { Http } from "../../src/client/http.ts";
import { Outage, type OutageEvent } from "../../src/client/outage.ts";

const GONE = localError({ code: "unreachable", category: "TRANSPORT", detail: "", recovery: "" });

/** The delays of many workers after many failures. */
async function delaysAt(url: string): Promise<number[]> {
  const delays: number[] = [];
  const report = (event: OutageEvent) => {
    if (event.type === "retrying") delays.push(event.delayMs);
  };
  for (let worker = 0; worker < 100; worker += 1)
    await new Outage(new Http({ url, failFast: false }), report).backOff(GONE, 20, AbortSignal.abort());
  return delays;
}

test.each([
  ["http://127.0.0.1:4180", 5_000],
  ["http://localhost:4180", 5_000],
  ["http://[::1]:4180", 5_000],
  ["https://errand.example", 15_000],
  ["https://127.0.0.1.example", 15_000],
])("%s: at most %i ms between two tries, spread over half of it", async (url, longestMs) => {
  const delays = await delaysAt(url);
  expect(Math.max(...delays)).toBeLessThanOrEqual(longestMs);
  expect(Math.min(...delays)).toBeGreaterThanOrEqual(longestMs / 2);
  expect(Math.max(...delays) - Math.min(...delays)).toBeGreaterThan(longestMs / 4);
});
