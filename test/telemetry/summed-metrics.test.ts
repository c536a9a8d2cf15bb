import { expect, test } from "vitest";
import { Metrics } from "../../src/telemetry/metrics.ts";
import { SummedMetrics } from "../../src/telemetry/summed-metrics.ts";

/** What a supervisor and its gateways do, without processes between them: values pass as JSON, as in a message. */
function gateways(count: number) {
  const sums = new SummedMetrics<number>();
  const members = Array.from({ length: count }, () => new Metrics());
  const overTheWire = <T>(value: T): T => JSON.parse(JSON.stringify(value));
  for (const [at, metrics] of members.entries()) {
    metrics.combineWith(async (own, ofBroker) => {
      for (const [other, one] of members.entries()) {
        sums.update(other, overTheWire(other === at ? own : await one.snapshot()));
      }
      return sums.text(overTheWire(ofBroker));
    });
  }
  const [first = new Metrics(), second = new Metrics()] = members;
  return { sums, first, second };
}

const figure = (text: string, name: string): number =>
  Number(new RegExp(`^${name.replaceAll(/[{}]/g, "\\$&")} (\\S+)$`, "m").exec(text)?.[1]);

test("a scrape sums what gateways count, and shows once what concerns the whole broker", async () => {
  const { first, second } = gateways(2);
  first.moves.inc({ move: "submit" }, 3);
  second.moves.inc({ move: "submit" }, 4);
  second.moves.inc({ move: "lease" });
  first.streams.set(2);
  second.onRead(() => second.parkedPolls.set(5));
  first.accept.observe(0.02);
  second.accept.observe(0.2);
  const depths = [{ agent: "scout", waiting: 7, working: 1, oldest_seconds: 4 }];
  first.onScrape(async () => depths);
  second.onScrape(async () => depths);
  for (const asked of [first, second, first]) {
    const text = await asked.text();
    expect(figure(text, 'errand_moves_total{move="submit"}')).toBe(7);
    expect(figure(text, 'errand_moves_total{move="lease"}')).toBe(1);
    expect(figure(text, "errand_event_streams")).toBe(2);
    expect(figure(text, "errand_parked_polls")).toBe(5);
    expect(figure(text, 'errand_accept_seconds_bucket{le="0.025"}')).toBe(1);
    expect(figure(text, "errand_accept_seconds_count")).toBe(2);
    expect(figure(text, 'errand_queue_waiting{agent="scout"}')).toBe(7);
    expect(figure(text, 'errand_queue_oldest_seconds{agent="scout"}')).toBe(4);
    expect(figure(text, "errand_redis_up")).toBe(1);
  }
  // The queue is empty again: no gateway remembers what it read for an earlier scrape.
  first.onScrape(async () => []);
  expect(await first.text()).not.toContain('agent="scout"');
  first.onScrape(async () => Promise.reject(new Error("away")));
  expect(figure(await first.text(), "errand_redis_up")).toBe(0);
});

test("limits and delays are not summed", async () => {
  const { first } = gateways(2);
  const alone = new Metrics();
  const [one, both] = [await alone.text(), await first.text()];
  expect(figure(both, "process_max_fds")).toBe(figure(one, "process_max_fds"));
  expect(figure(both, "process_start_time_seconds")).toBe(figure(one, "process_start_time_seconds"));
  expect(figure(both, "nodejs_eventloop_lag_p99_seconds")).toBeLessThan(60);
  // Every name is still there.
  const names = (text: string) => [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name).sort();
  expect(names(both)).toEqual(names(one));
});

test("the counts of a gateway that ended stay in the sum, its gauges do not", async () => {
  const { sums, first, second } = gateways(2);
  first.moves.inc({ move: "submit" }, 3);
  second.moves.inc({ move: "submit" }, 4);
  second.accept.observe(0.2);
  second.streams.set(9);
  await first.text();
  sums.end(1);
  const successor = new Metrics();
  successor.moves.inc({ move: "submit" });
  sums.update(2, await successor.snapshot());
  sums.update(0, await first.snapshot());
  const text = await sums.text([]);
  expect(figure(text, 'errand_moves_total{move="submit"}')).toBe(8);
  expect(figure(text, "errand_accept_seconds_count")).toBe(1);
  expect(figure(text, "errand_event_streams")).toBe(0);
  // A second end adds to the first.
  sums.end(2);
  expect(figure(await sums.text([]), 'errand_moves_total{move="submit"}')).toBe(8);
});
