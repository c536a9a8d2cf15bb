/** What a delegation's place in the queue depends on. test/queue/turns.test.ts has the order itself. */
import { expect, test } from "vitest";
import { openLifecycle } from "../support/lifecycle.ts";

test("returned work comes first only for its first 100 leases", async () => {
  const { move, inState } = await openLifecycle();
  const id = await inState("submitted");
  const places: unknown[] = [];
  for (let lease = 1; lease <= 101; lease += 1) {
    const leased = await move("lease", id);
    expect(leased.kind).toBe("ok");
    const outcome = await move("unconfirm", id);
    places.push(outcome.kind === "ok" && outcome.returned === true);
  }
  expect(places).toEqual([...Array<boolean>(100).fill(true), false]);
});
