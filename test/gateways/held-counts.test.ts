import { expect, test } from "vitest";
import { toPrincipal } from "../../src/engine/access/access.ts";
import { Quotas } from "../../src/engine/access/quotas.ts";
import { HeldHere, HeldSums, stepOf } from "../../src/gateways/held-counts.ts";
import { until } from "../support/until.ts";

const CALLER = toPrincipal("caller:ann");

/** The quotas of several gateways, connected as a supervisor connects them. */
function gateways(count: number, limit: number) {
  const members: { held: HeldHere; quotas: Quotas }[] = [];
  let messages = 0;
  const sums = new HeldSums<number>((member, held) => {
    messages += 1;
    members[member]?.held.update(held);
  });
  const add = () => {
    const at = members.length;
    const held = new HeldHere(count, (reported) => sums.report(at, reported));
    members.push({ held, quotas: new Quotas({ polls: limit }, held) });
    sums.join(at);
  };
  for (let n = 0; n < count; n += 1) add();
  const quotasOf = (at: number): Quotas => {
    const member = members[at];
    if (!member) throw new Error(`no gateway ${at}`);
    return member.quotas;
  };
  const elsewhere = (at: number) => members[at]?.held.elsewhere("polls", CALLER.text);
  return { quotasOf, elsewhere, leave: (at: number) => sums.leave(at), add, messages: () => messages };
}

test("gateways count the polls of a principal together, however they are spread", async () => {
  const { quotasOf, elsewhere, leave, add } = gateways(2, 10);
  const [first, second] = [quotasOf(0), quotasOf(1)];
  // More than its half at one of them is not refused.
  for (let n = 0; n < 9; n += 1) first.acquire(CALLER, "polls");
  await until(() => elsewhere(1) === 9);
  second.acquire(CALLER, "polls");
  expect(() => second.acquire(CALLER, "polls")).toThrow(/too many polls/);
  await until(() => elsewhere(0) === 1);
  expect(() => first.acquire(CALLER, "polls")).toThrow(/too many polls/);
  // The operator has no limit, and others have their own.
  first.acquire(toPrincipal("operator"), "polls");
  second.acquire(toPrincipal("caller:ben"), "polls");

  for (let n = 0; n < 4; n += 1) first.release(CALLER, "polls");
  await until(() => elsewhere(1) === 5);
  second.acquire(CALLER, "polls");
  // A gateway that starts learns what the others hold; what a dead one held is free.
  add();
  await until(() => elsewhere(2) === 7);
  leave(0);
  expect(elsewhere(1)).toBe(0);
});

test("a few polls of each principal cost no message, and a principal is never refused below its limit", async () => {
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

test("a quota that is not counted together is divided", () => {
  expect(new Quotas({ sessions: 1_000 }).part("sessions")).toBe(1_000);
  expect(new Quotas({ sessions: 1_000 }, new HeldHere(3, () => {})).part("sessions")).toBe(334);
});
