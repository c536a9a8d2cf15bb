import { expect, test } from "vitest";
import { formatWake, parseWake, type Wake } from "../../../src/engine/leases/wake-message.ts";

test("a wake arrives as it was sent, and a message of an unknown kind or form is left out", () => {
  const wakes: Wake[] = [
    { kind: "ticket", agent: "scout", drain: true },
    { kind: "kept_ticket", agent: "scout", worker: 'a worker "of" scout' },
    { kind: "push_agents" },
  ];
  for (const wake of wakes) expect(parseWake(formatWake({ from: "g1", wake }))).toEqual({ from: "g1", wake });
  expect(parseWake('{"from":"g1","wake":{"kind":"of a later build"}}')).toBeUndefined();
  expect(parseWake("g1 scout")).toBeUndefined();
});
