/**
 * Quotas of one principal across the gateways of a supervisor. Each gateway reports how many polls and streams a principal
 * holds there; the supervisor adds them up and sends each gateway the sum of the others. Limit: reports are at most
 * {@link FLUSH_MS} old and rounded down, so a principal may get about a sixteenth more than its limit, and never less.
 */
import type { Held } from "./messages.ts";

const FLUSH_MS = 50;
/** All gateways together leave less than 1/16 of a limit unreported. */
const PRECISION = 16;

/** Counts are reported in steps of this size, so that the many principals with a few polls cost no message. */
export const stepOf = (limit: number, gateways: number): number =>
  Math.max(1, Math.floor(limit / (PRECISION * gateways)));

const keyOf = (quota: string, owner: string): string => `${quota} ${owner}`;

/** At one gateway: what it reported, and what the others hold. */
export class HeldHere {
  readonly #gateways: number;
  readonly #report: (held: Held) => void;
  readonly #reported = new Map<string, number>();
  readonly #changed = new Map<string, Held[number]>();
  readonly #elsewhere = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;

  constructor(gateways: number, report: (held: Held) => void) {
    this.#gateways = gateways;
    this.#report = report;
  }

  get gateways(): number {
    return this.#gateways;
  }

  changed(quota: string, owner: string, count: number, limit: number): void {
    const key = keyOf(quota, owner);
    const rounded = count - (count % stepOf(limit, this.#gateways));
    const reported = this.#reported.get(key) ?? 0;
    if (rounded === reported) {
      this.#changed.delete(key);
      return;
    }
    this.#changed.set(key, { quota, owner, count: rounded });
    this.#timer ??= setTimeout(() => this.#flush(), FLUSH_MS).unref();
  }

  elsewhere(quota: string, owner: string): number {
    return this.#elsewhere.size === 0 ? 0 : (this.#elsewhere.get(keyOf(quota, owner)) ?? 0);
  }

  /** Applies the counts that the supervisor sent. */
  update(held: Held): void {
    for (const { quota, owner, count } of held) {
      if (count > 0) this.#elsewhere.set(keyOf(quota, owner), count);
      else this.#elsewhere.delete(keyOf(quota, owner));
    }
  }

  #flush(): void {
    this.#timer = undefined;
    const held = [...this.#changed.values()];
    this.#changed.clear();
    for (const { quota, owner, count } of held) {
      if (count > 0) this.#reported.set(keyOf(quota, owner), count);
      else this.#reported.delete(keyOf(quota, owner));
    }
    if (held.length > 0) this.#report(held);
  }
}

/** At the supervisor: what each gateway holds. `Member` identifies a gateway. */
export class HeldSums<Member> {
  readonly #byMember = new Map<Member, Map<string, Held[number]>>();
  readonly #send: (member: Member, held: Held) => void;

  constructor(send: (member: Member, held: Held) => void) {
    this.#send = send;
  }

  /** Adds a gateway, and sends it the counts of the others. */
  join(member: Member): void {
    this.#byMember.set(member, new Map());
    const known = [...this.#byMember.values()].flatMap((counts) => [...counts.values()]);
    const held = known.map((one) => ({ ...one, count: this.#elsewhere(member, one) }));
    if (held.length > 0) this.#send(member, held);
  }

  report(member: Member, held: Held): void {
    const counts = this.#byMember.get(member);
    if (!counts) return;
    for (const one of held) {
      if (one.count > 0) counts.set(keyOf(one.quota, one.owner), one);
      else counts.delete(keyOf(one.quota, one.owner));
    }
    this.#inform(member, held);
  }

  leave(member: Member): void {
    const held = [...(this.#byMember.get(member)?.values() ?? [])];
    this.#byMember.delete(member);
    if (held.length > 0) this.#inform(member, held);
  }

  #inform(from: Member, held: Held): void {
    for (const member of this.#byMember.keys()) {
      if (member === from) continue;
      this.#send(
        member,
        held.map((one) => ({ ...one, count: this.#elsewhere(member, one) })),
      );
    }
  }

  #elsewhere(member: Member, { quota, owner }: Held[number]): number {
    let sum = 0;
    for (const [other, counts] of this.#byMember) {
      if (other !== member) sum += counts.get(keyOf(quota, owner))?.count ?? 0;
    }
    return sum;
  }
}
