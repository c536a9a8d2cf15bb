/**
 * Replaces gateways without failing a request: their successors start first, then the old ones stop one after the other.
 * If a successor does not start, the old ones stay.
 */
import type { Log } from "../telemetry/log.ts";
import type { GatewayChild } from "./child.ts";
import type { Place, Places } from "./places.ts";

/** How long a successor may take until it is ready. */
const START_MS = 60_000;
/** How long a gateway that is replaced may take to finish its requests. */
const RETIRE_MS = 45_000;

export class Replacement {
  readonly #places: Places;
  readonly #log: Log;
  /** Ends with the last replacement that was requested: there is one at a time. */
  #running: Promise<void> = Promise.resolve();
  /** Replacements of all gateways that have not begun. */
  #waiting = 0;
  /** Gateways that asked for a successor. */
  readonly #asked = new Set<GatewayChild>();

  constructor(places: Places, log: Log) {
    this.#places = places;
    this.#log = log;
  }

  /** Resolves when all are replaced, or when it gave up and the old ones stay. */
  replaceAll(): Promise<void> {
    // One that has not begun will start gateways from the newest files anyway.
    if (this.#waiting > 0) return this.#running;
    this.#waiting += 1;
    return this.#next(() => {
      this.#waiting -= 1;
      return this.#replace(this.#places.all);
    });
  }

  /** Replaces a gateway that asks for a successor: once, however often it asks. */
  replaceOne(child: GatewayChild): void {
    if (this.#places.isClosing || child.isDismissed || this.#asked.has(child)) return;
    this.#asked.add(child);
    const place = this.#places.all.filter(({ number }) => number === child.number);
    void this.#next(() => this.#replace(place)).then(() => this.#asked.delete(child));
  }

  #next(replace: () => Promise<void>): Promise<void> {
    this.#running = this.#running.then(replace);
    return this.#running;
  }

  async #replace(places: readonly Place[]): Promise<void> {
    if (this.#places.isClosing) return;
    const since = performance.now();
    const gateways = places.map(({ number }) => number);
    this.#log.info({ gateways }, "replacing gateways: their successors start");
    const successors = await this.#startSuccessors(places);
    if (successors === null) return;
    const old: GatewayChild[] = [];
    for (const [place, child] of successors) {
      if (place.current) old.push(place.current);
      clearTimeout(place.timer);
      place.current = this.#places.children.has(child) ? child : undefined;
      // The successor ended after it was ready.
      if (!place.current) this.#places.fill(place);
    }
    for (const child of old) {
      await this.#retire(child);
      if (this.#places.isClosing) return;
    }
    this.#log.info({ gateways, ms: Math.round(performance.now() - since) }, "gateways replaced");
  }

  /**
   * Starts all of them before an old one stops, so that the connections of the old ones spread evenly. Null if a stop
   * came first, or one does not start: then those that did are ended.
   */
  async #startSuccessors(places: readonly Place[]): Promise<ReadonlyMap<Place, GatewayChild> | null> {
    const successors = new Map<Place, GatewayChild>();
    for (const place of places) {
      const child = this.#places.spawn(place);
      successors.set(place, child);
      const late = new Promise<"late">((resolve) => setTimeout(resolve, START_MS, "late").unref());
      const end = await Promise.race([child.ready.then(() => null), child.ended, late]);
      if (this.#places.isClosing) return null;
      if (end === null) continue;
      const reason = end === "late" ? { seconds: START_MS / 1000 } : { code: end.code, signal: end.signal };
      this.#log.error(
        { gateway: place.number, ...reason },
        "the successor did not start, so the gateways are not replaced",
      );
      await Promise.all([...successors.values()].map((one) => this.#retire(one)));
      return null;
    }
    return successors;
  }

  /** Ends a gateway while the others go on. */
  async #retire(child: GatewayChild): Promise<void> {
    // It serves nothing yet.
    if (child.state === "starting") child.kill();
    else child.send({ type: "stop", handover: true });
    child.dismiss();
    this.#places.announce();
    await child.endsWithin(RETIRE_MS);
  }
}
