import { expect, test } from "vitest";
import { KnownClients } from "../../../src/doors/mcp/session/client-pings.ts";

test("a principal with many sessions pushes out its own only", () => {
  const clients = new KnownClients();
  const alice = clients.of("caller:alice", "one");
  const bob = clients.of("caller:bob", "one");
  for (let n = 0; n < 20_000; n += 1) clients.of("caller:bob", `${n}`);
  expect(clients.of("caller:alice", "one")).toBe(alice);
  expect(clients.of("caller:bob", "one")).not.toBe(bob);
});
