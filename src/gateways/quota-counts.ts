/**
 * Quotas of a principal across the gateways of a supervisor. Each gateway reports how many polls and streams each
 * principal has open there; the supervisor sends each gateway the sum of the others. Limit: a count is reported up to
 * {@link REPORT_MS} late and rounded down, so a principal may get about a sixteenth more than its limit (an
 * eighth while the gateways are replaced, because there are twice as many), and never less.
 */
import type { QuotaCount } from "./messages.ts";

const REPORT_MS = 50;
/** All gateways together leave less than 1/16 of a limit unreported. */
const PRECISION = 16;

/** Counts are reported in steps of this size, so that principals with only a few polls cost no message. */
export const stepOf = (limit: number, gateways: number): number =>
  Math.max(1, Math.floor(limit / (PRECISION * gateways)));

const keyOf = (quota: string, owner: string): string => `${quota} ${owner}`;

/** A gateway's part: reports its own counts, and knows the sums of the others. */
export class GatewayCounts {
  /** How many gateways there are. */
  readonly gateways: number;
  readonly #send: (counts: QuotaCount[]) => void;
  /** The counts that the supervisor has from this gateway. */
  readonly #reported = new Map<string, number>();
  readonly #unreported = new Map<string, QuotaCount>();
  readonly #elsewhere = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;

  constructor(gateways: number, send: (counts: QuotaCount[]) => void) {
    this.gateways = gateways;
    this.#send = send;
  }

  /** Call it whenever a count of this gateway changes. */
  changed(quota: string, owner: string, count: number, limit: number): void {
    const key = keyOf(quota, owner);
    const rounded = count - (count % stepOf(limit, this.gateways));
    const reported = this.#reported.get(key) ?? 0;
    if (rounded === reported) {
      this.#unreported.delete(key);
      return;
    }
    this.#unreported.set(key, { quota, owner, count: rounded });
    this.#timer ??= setTimeout(() => this.#report(), REPORT_MS).unref();
  }

  /** How many the principal has open at the other gateways. */
  elsewhere(quota: string, owner: string): number {
    return this.#elsewhere.size === 0 ? 0 : (this.#elsewhere.get(keyOf(quota, owner)) ?? 0);
  }

  /** Stores sums of the other gateways, from the supervisor. */
  update(sums: readonly QuotaCount[]): void {
    for (const { quota, owner, count } of sums) {
      if (count > 0) this.#elsewhere.set(keyOf(quota, owner), count);
      else this.#elsewhere.delete(keyOf(quota, owner));
    }
  }

  #report(): void {
    this.#timer = undefined;
    const counts = [...this.#unreported.values()];
    this.#unreported.clear();
    for (const { quota, owner, count } of counts) {
      if (count > 0) this.#reported.set(keyOf(quota, owner), count);
      else this.#reported.delete(keyOf(quota, owner));
    }
    if (counts.length > 0) this.#send(counts);
  }
}

/** The supervisor's part: keeps the counts of every gateway, and sends each the sums of the others. */
export class QuotaSums<Gateway> {
  readonly #counts = new Map<Gateway, Map<string, QuotaCount>>();
  readonly #send: (gateway: Gateway, sums: QuotaCount[]) => void;

  constructor(send: (gateway: Gateway, sums: QuotaCount[]) => void) {
    this.#send = send;
  }

  /** Adds a gateway, and sends it the sums of the others. */
  add(gateway: Gateway): void {
    this.#counts.set(gateway, new Map());
    const known = [...this.#counts.values()].flatMap((counts) => [...counts.values()]);
    if (known.length > 0) this.#send(gateway, this.#sumsFor(gateway, known));
  }

  /** Stores changed counts of a gateway, and sends the new sums to the others. */
  update(gateway: Gateway, changed: readonly QuotaCount[]): void {
    const counts = this.#counts.get(gateway);
    if (!counts) return;
    for (const one of changed) {
      if (one.count > 0) counts.set(keyOf(one.quota, one.owner), one);
      else counts.delete(keyOf(one.quota, one.owner));
    }
    this.#sendToOthers(gateway, changed);
  }

  /** Removes a gateway that ended: what was open there is closed. */
  remove(gateway: Gateway): void {
    const counts = [...(this.#counts.get(gateway)?.values() ?? [])];
    this.#counts.delete(gateway);
    if (counts.length > 0) this.#sendToOthers(gateway, counts);
  }

  #sendToOthers(gateway: Gateway, changed: readonly QuotaCount[]): void {
    for (const other of this.#counts.keys()) {
      if (other !== gateway) this.#send(other, this.#sumsFor(other, changed));
    }
  }

  /** The sums over all gateways but this one, of the same quotas and principals as in `counts`. */
  #sumsFor(gateway: Gateway, counts: readonly QuotaCount[]): QuotaCount[] {
    return counts.map(({ quota, owner }) => {
      let count = 0;
      for (const [other, known] of this.#counts) {
        if (other !== gateway) count += known.get(keyOf(quota, owner))?.count ?? 0;
      }
      return { quota, owner, count };
    });
  }
}
