/** The bounds on large request and response bodies over all principals. */
import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { expect, test, vi } from "vitest";
import { Inflow } from "../../../src/doors/http/inflow.ts";
import { Outflow } from "../../../src/doors/http/outflow.ts";

const BIG = 100_000;

test("large bodies in progress are bounded for one principal and for all; small ones are not counted", () => {
  const inflow = new Inflow({ maxPerOwner: 2 * BIG, maxTotal: 3 * BIG });
  const bodies = [inflow.body("a"), inflow.body("a"), inflow.body("b")];
  for (const body of bodies) body.grow(BIG);
  const refused = (code: string) => expect.objectContaining({ code });
  expect(() => inflow.body("a").grow(BIG)).toThrow(refused("quota_exceeded"));
  expect(() => inflow.body("c").grow(BIG)).toThrow(refused("overloaded"));
  inflow.body("c").grow(1_000);
  // A growing body counts once; a released one no longer counts, even if released twice.
  bodies[0]?.grow(BIG);
  bodies[0]?.release();
  bodies[0]?.release();
  expect([inflow.requestBytes("a"), inflow.requestBytes("b"), inflow.requestBytes()]).toEqual([
    BIG,
    BIG,
    2 * BIG,
  ]);
  inflow.body("c").grow(BIG);
});

test("a body that waits for its turn counts also after its client has left", () => {
  const inflow = new Inflow();
  const body = inflow.body("a");
  body.grow(BIG);
  const letGo = body.keep();
  body.release();
  expect(inflow.requestBytes("a")).toBe(BIG);
  letGo();
  body.release();
  expect(inflow.requestBytes()).toBe(0);
});

test("middle-sized bodies count, because thousands of them would fill the memory", () => {
  const inflow = new Inflow({ maxPerOwner: 10_000, maxTotal: BIG });
  inflow.body("a").grow(5_000);
  inflow.body("a").grow(5_000);
  expect(() => inflow.body("a").grow(5_000)).toThrow(expect.objectContaining({ code: "quota_exceeded" }));
});

test("streams wait for room beyond maxTotal, but each principal always has room for one frame", async () => {
  const outflow = new Outflow({ now: () => 0, onCut: () => {}, maxPerOwner: 2 * BIG, maxTotal: 3 * BIG });
  const cut = vi.fn();
  const release = await outflow.reserve("a", BIG, cut);
  await outflow.reserve("a", BIG, cut);
  await outflow.reserve("b", BIG, cut);
  // At the limit, a principal without a frame still gets one.
  const only = await outflow.reserve("c", BIG, cut);
  let came = false;
  const second = outflow.reserve("c", BIG, cut).then((done) => {
    came = true;
    return done;
  });
  release();
  await Promise.resolve();
  expect(came).toBe(false);
  only();
  (await second)();
  expect(cut).not.toHaveBeenCalled();
  expect([outflow.unread("a"), outflow.unread("b"), outflow.unread("c")]).toEqual([BIG, BIG, 0]);
});

test("a hold counts what was loaded, makes others wait, and one whose reader leaves waits no longer", async () => {
  const outflow = new Outflow({ now: () => 0, onCut: () => {}, maxPerOwner: 2 * BIG, maxTotal: 9 * BIG });
  const gone = new AbortController();
  const first = await outflow.hold("a", 2 * BIG, vi.fn());
  const got: string[] = [];
  const second = outflow.hold("a", BIG, vi.fn()).then((held) => {
    got.push("second");
    return held;
  });
  void outflow.hold("a", BIG, vi.fn(), gone.signal).then(() => got.push("gone"));
  await outflow.hold("b", BIG, vi.fn());
  gone.abort();
  await vi.waitFor(() => expect(got).toEqual(["gone"]));
  expect(outflow.unread("a")).toBe(2 * BIG);
  first.set(BIG);
  (await second).set(100);
  expect(outflow.unread("a")).toBe(BIG);
  first.release();
  first.release();
  first.set(BIG);
  expect(outflow.unread("a")).toBe(0);
});

test("unread answers of addresses without a token have a total of their own, and cut no principal", async () => {
  const outflow = new Outflow({ now: () => 0, onCut: () => {}, maxOfAddresses: 2 * BIG });
  const [small, large, principal] = [vi.fn(), vi.fn(), vi.fn()];
  await outflow.hold("address 192.0.2.1", BIG - 1, small);
  await outflow.hold("address 192.0.2.2", BIG, large);
  await outflow.hold("caller:x", 9 * BIG, principal);
  const answer = () => new ServerResponse(new IncomingMessage(new Socket()));
  outflow.send(answer(), Buffer.alloc(BIG), "caller:y");
  expect(large).not.toHaveBeenCalled();
  outflow.send(answer(), Buffer.alloc(BIG), "address 192.0.2.3");
  expect([small, large, principal].map(({ mock }) => mock.calls.length)).toEqual([0, 1, 0]);
});
