/** A call of an A2A server that is canceled before it began. */
import { expect, onTestFinished, test } from "vitest";
import { Remote } from "../../src/relay/remote.ts";

test("an aborted call asks no server, and leaves no failure behind that nobody awaits", async () => {
  const unhandled: unknown[] = [];
  const note = (reason: unknown) => unhandled.push(reason);
  process.prependListener("unhandledRejection", note);
  onTestFinished(() => void process.off("unhandledRejection", note));
  let asked = 0;
  const remote = new Remote({
    url: "http://127.0.0.1:1/",
    fetch: async () => {
      asked += 1;
      throw new TypeError("fetch failed");
    },
  });
  await expect(remote.open(AbortSignal.abort(new Error("canceled")))).rejects.toThrow("canceled");
  // Unhandled rejections are told after the microtasks of one turn.
  await new Promise((resolve) => setImmediate(resolve));
  expect([asked, unhandled]).toEqual([0, []]);
});
