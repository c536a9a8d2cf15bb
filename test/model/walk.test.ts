/** Some random walks; walk.slow.test.ts walks further, until every move and error code has occurred. */
import { expect, test } from "vitest";
import { MOVES, type Move } from "../../src/lifecycle/states.ts";
import { STEPS } from "./step.ts";
import { patienceMs, walks } from "./walks.ts";

const RUNS = 20;

test("the constants that the model takes from the table are those of the contract", () => {
  const named = (fits: (move: Move) => boolean) =>
    Object.entries(MOVES).flatMap(([name, move]) => (fits(move) ? [name] : []));
  expect(named((move) => move.spends === true)).toEqual(["lapse", "retry"]);
  expect(named((move) => move.returned === true)).toEqual(["answer", "resume", "release", "unconfirm"]);
  expect(named((move) => move.refunds === true)).toEqual(["reclaim"]);
  expect(named((move) => move.reclaimable === true)).toEqual(["lapse"]);
  expect(named((move) => move.drops_artifacts === "all")).toEqual(["release", "retry"]);
  expect(named((move) => move.drops_artifacts === "lapsed")).toEqual(["lease"]);
  expect(named((move) => move.drops_artifacts === "own")).toEqual(["unconfirm"]);
  expect(named((move) => move.event_only === true)).toEqual(["retry"]);
  expect(named((move) => move.lease === "extend")).toEqual([
    "heartbeat",
    "progress",
    "artifact",
    "hold",
    "use",
  ]);
  expect(named((move) => move.from.includes("submitted") && move.lease === "grant")).toEqual(["lease"]);
});

test(`${RUNS} walks of up to ${STEPS} commands agree with the model`, { timeout: patienceMs(RUNS) }, () =>
  walks(RUNS),
);
