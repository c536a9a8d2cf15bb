import { expect, test } from "vitest";
import { toPrincipal } from "../../src/engine/access/access.ts";
import { Quotas } from "../../src/engine/access/quotas.ts";
import { GatewayCounts, QuotaSums, stepOf } from "../../src/gateways/quota-counts.ts";
import { until } from "../support/until.ts";

const CALLER = toPrincipal("caller:ann");

/** The quotas of several gateways, connected as a supervisor connects them. */
function gateways(count: number, limit: number) {
  const all: { counts: GatewayCounts; quotas: Quotas }[] = [];
  let messages = 0;
  const sums = new QuotaSums<number>((at, sent) => {
    messages += 1;
    all[at]?.counts.update(sent);
  });
  const add = () => {
    const at = all.length;
    const counts = new GatewayCounts(count, (sent) => sums.update(at, sent));
    all.push({ counts, quotas: new Quotas({ polls: limit }, counts) });
    sums.add(at);
  };
  for (let n = 0; n < count; n += 1) add();
  const quotasOf = (at: number): Quotas => {
    const gateway = all[at];
    if (!gateway) throw new Error(`no gateway ${at}`);
    return gateway.quotas;
  };
  /** The caller's polls at the other gateways, as this one knows them. */
  const elsewhere = (at: number) => all[at]?.counts.elsewhere("polls", CALLER.text);
  return { quotasOf, elsewhere, remove: (at: number) => sums.remove(at), add, messages: () => messages };
}

test("a principal's polls at all gateways count together, however they are spread", async () => {
  const { quotasOf, elsewhere, remove, add } = gateways(2, 10);
  const [first, second] = [quotasOf(0), quotasOf(1)];
  // One gateway grants more than half of the limit.
  for (let n = 0; n < 9; n += 1) first.acquire(CALLER, "polls");
  await until(() => elsewhere(1) === 9);
  second.acquire(CALLER, "polls");
  expect(() => second.acquire(CALLER, "polls")).toThrow(/too many polls/);
  await until(() => elsewhere(0) === 1);
  expect(() => first.acquire(CALLER, "polls")).toThrow(/too many polls/);
  // The operator has no limit; other principals have a limit of their own.
  first.acquire(toPrincipal("operator"), "polls");
  second.acquire(toPrincipal("caller:ben"), "polls");

  for (let n = 0; n < 4; n += 1) first.release(CALLER, "polls");
  await until(() => elsewhere(1) === 5);
  second.acquire(CALLER, "polls");
  // A new gateway gets the counts of the others. The polls of a dead gateway no longer count.
  add();
  await until(() => elsewhere(2) === 7);
  remove(0);
  expect(elsewhere(1)).toBe(0);
});

test("principals with few polls cost no message, and nobody is refused below the limit", async () => {
  const { quotasOf, elsewhere, messages } = gateways(2, 1_000);
  const step = stepOf(1_000, 2);
  for (let n = 0; n < 200; n += 1) {
    for (let polls = 1; polls < step; polls += 1) quotasOf(0).acquire(toPrincipal(`caller:c${n}`), "polls");
  }
  for (let n = 0; n < 999; n += 1) quotasOf(0).acquire(CALLER, "polls");
  await until(() => (elsewhere(1) ?? 0) > 0);
  expect(messages()).toBe(1);
  expect(elsewhere(1)).toBeLessThanOrEqual(999);
  expect(elsewhere(1)).toBeGreaterThan(999 - step);
  quotasOf(1).acquire(CALLER, "polls");
});
