import { describe, expect, test } from "vitest";
import { toPrincipal } from "../../../src/engine/access/access.ts";
import { readWhenReady } from "../../../src/engine/delegations/read.ts";
import { collectPage } from "../../../src/engine/events/subscribe.ts";
import { toEntry } from "../../../src/events/entry.ts";
import type { Watched } from "../../../src/events/watch.ts";
import type { StopSignal } from "../../../src/util/stop-signal.ts";
import { client, startBroker } from "../../support/broker.ts";
import { until } from "../../support/until.ts";

/** Longer than a test may take. */
const LONG_S = 60;

describe("a page for a long-poll", () => {
  const entry = (id: string, positions: string[]): Watched => ({
    entry: toEntry(0, id, []),
    positions,
    isHeld: false,
  });
  const CAUGHT_UP: Watched = { caught_up: true, positions: ["1-0"] };

  /** Yields these entries, then nothing until the reader leaves. */
  async function* quiet(events: readonly Watched[], signal: StopSignal) {
    yield* events;
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      else signal.addEventListener("abort", { handleEvent: resolve });
    });
  }
  const turn = async () => () => {};
  const page = async (events: readonly Watched[], options = {}) =>
    collectPage(
      (signal) => quiet(events, signal),
      { wait_seconds: LONG_S, limit: 100, signal: new AbortController().signal, turn, ...options },
      (event) => ("entry" in event ? event.entry.id : undefined),
    );

  test("ends with the first live event", async () => {
    const { items, positions } = await page([CAUGHT_UP, entry("2-0", ["2-0"])]);
    expect({ items, positions }).toEqual({ items: ["2-0"], positions: ["2-0"] });
  });

  test("ends at the end of the stored events, if there were any", async () => {
    expect((await page([entry("1-0", ["1-0"]), CAUGHT_UP])).items).toEqual(["1-0"]);
  });

  test("moves its cursor past events that a filter dropped, stored or live", async () => {
    const skipped = (id: string): Watched => ({ skipped: true, positions: [id] });
    const { positions } = await page([CAUGHT_UP, skipped("3-0"), skipped("4-0")], { wait_seconds: 0.01 });
    expect(positions).toEqual(["4-0"]);
  });
});

describe("waiting for a version", () => {
  async function setup() {
    const { url, gateway } = await startBroker();
    const api = client(url);
    await api.agent("scout");
    const id = String((await api.delegate("scout")).body.id);
    const { broker } = gateway;
    const wait = (after_version: number) =>
      readWhenReady(broker, toPrincipal("operator"), id, {
        wait_seconds: LONG_S,
        after_version,
        signal: new AbortController().signal,
      });
    /** Resolves once all earlier subscribers have received this version. */
    const listen = () => {
      let received = 0;
      const push = ({ seq }: { seq: number }) => {
        received = seq;
      };
      broker.feed.subscribe({ kind: "delegation", id }, { push, gap: () => {} });
      return (version: number) => until(() => received === version);
    };
    return { api, wait, listen };
  }

  test("continues past versions that are not greater", async () => {
    const { api, wait, listen } = await setup();
    // Subscribes before it returns, and so is notified before `received` is.
    const waiting = wait(2);
    const received = listen();
    const lease = (await api.lease("scout")).body.leases[0].lease_id;
    await received(2);
    await api.heartbeat(lease, { progress: { message: "half" } });
    expect((await waiting).get("version")).toBe(3);
  });

  test("ends at once if no greater version can come", async () => {
    const { api, wait } = await setup();
    await api.reply((await api.lease("scout")).body.leases[0].lease_id);
    expect((await wait(3)).get("state")).toBe("completed");
  });
});
