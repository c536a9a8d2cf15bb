/** What an attempt stores: artifacts, their bytes until they are dropped or replaced, and the error of a failed one. */
import { describe, expect, test } from "vitest";
import type { Command } from "../../src/lifecycle/command.ts";
import { dump } from "../support/dump.ts";
import { openLifecycle, type TestLifecycle } from "../support/lifecycle.ts";
import { fieldOf } from "../support/record.ts";

const artifactOf = (artifactId: string, text: string) => ({ artifactId, parts: [{ text }] });
const shownOf = async (lifecycle: TestLifecycle, id: string) =>
  JSON.parse((await lifecycle.read(id))?.json ?? "");

/** Sends artifacts on the live lease. */
async function send(lifecycle: TestLifecycle, id: string, artifacts: Command["artifacts"]): Promise<string> {
  const params = { fence: (await lifecycle.read(id))?.get("fence") };
  return (await lifecycle.writer.move({ move: "artifact", id, params, ...(artifacts && { artifacts }) }))
    .outcome.kind;
}

describe("artifacts", () => {
  const MB = "x".repeat(1_000_000);

  test("count with all bodies of their delegation; a refused one changes nothing", async () => {
    const lifecycle = await openLifecycle();
    const id = await lifecycle.inState("working");
    for (const name of ["a", "b", "c"])
      expect(await send(lifecycle, id, [{ artifact: artifactOf(name, MB) }])).toBe("ok");
    const before = await dump(lifecycle.redis);
    expect(await send(lifecycle, id, [{ artifact: artifactOf("d", MB) }])).toBe("too_large");
    expect(await send(lifecycle, id, [{ artifact: artifactOf("a", MB), append: true }])).toBe("too_large");
    expect(await dump(lifecycle.redis)).toEqual(before);
  });

  test("do not count any more once they are replaced, and nothing of them is kept", async () => {
    const lifecycle = await openLifecycle();
    const id = await lifecycle.inState("working");
    await send(lifecycle, id, [{ artifact: artifactOf("b", "second") }]);
    for (let n = 0; n < 6; n += 1) {
      expect(await send(lifecycle, id, [{ artifact: artifactOf("a", MB) }])).toBe("ok");
      expect(await send(lifecycle, id, [{ artifact: artifactOf("a", MB), append: true }])).toBe("ok");
    }
    await send(lifecycle, id, [
      { artifact: artifactOf("b", "first") },
      { artifact: artifactOf("a", "last") },
    ]);
    expect((await shownOf(lifecycle, id)).artifacts).toEqual([
      artifactOf("b", "first"),
      artifactOf("a", "last"),
    ]);
    const bytes = [artifactOf("b", "first"), artifactOf("a", "last")].map(
      (one) => JSON.stringify(one).length,
    );
    const stored = await fieldOf(lifecycle.redis, lifecycle.shards.at(0).delegation(id), "bytes");
    expect(Number(stored)).toBe(bytes.reduce((a, b) => a + b));
    const kept = await lifecycle.redis.hvals(lifecycle.shards.at(0).artifacts(id));
    expect(kept.join("").length).toBeLessThan(500);
  });

  test("with one id in one move are one artifact: the last, or all appended parts", async () => {
    const lifecycle = await openLifecycle();
    const id = await lifecycle.inState("working");
    await send(lifecycle, id, [{ artifact: artifactOf("a", "1") }, { artifact: artifactOf("a", "2") }]);
    expect((await shownOf(lifecycle, id)).artifacts).toEqual([artifactOf("a", "2")]);
    const more = ["3", "4"].map((text) => ({ artifact: artifactOf("a", text), append: true }));
    await send(lifecycle, id, more);
    const parts = ["2", "3", "4"].map((text) => ({ text }));
    expect((await shownOf(lifecycle, id)).artifacts).toEqual([{ artifactId: "a", parts }]);
    expect(Number(await fieldOf(lifecycle.redis, lifecycle.shards.at(0).delegation(id), "bytes"))).toBe(
      ["2", "3", "4"].map((text) => JSON.stringify(artifactOf("a", text)).length).reduce((a, b) => a + b),
    );
  });

  test.each([
    [
      "lapse",
      async (lifecycle: TestLifecycle, id: string) => {
        lifecycle.clock.offset_ms += 61_000;
        expect(await lifecycle.move("due", id)).toMatchObject({ move: "lapse" });
        // Until then, the holder may reclaim them.
        lifecycle.clock.offset_ms += 2_000;
        await lifecycle.move("lease", id);
        await lifecycle.move("unconfirm", id);
      },
    ],
    [
      "retry",
      async (lifecycle: TestLifecycle, id: string) => {
        expect(await lifecycle.move("fail", id, { retryable: true })).toMatchObject({ move: "retry" });
      },
    ],
    ["release", (lifecycle: TestLifecycle, id: string) => lifecycle.move("release", id)],
    ["unconfirm", (lifecycle: TestLifecycle, id: string) => lifecycle.move("unconfirm", id)],
  ] as const)("of an attempt that ends by %s are dropped, and do not count any more", async (_move, end) => {
    const lifecycle = await openLifecycle({ backoff: { jitter: 0 } });
    const id = await lifecycle.inState("working");
    for (const name of ["a", "b", "c"]) await send(lifecycle, id, [{ artifact: artifactOf(name, MB) }]);
    await end(lifecycle, id);
    expect((await shownOf(lifecycle, id)).artifacts).toEqual([]);
    expect(await lifecycle.redis.exists(lifecycle.shards.at(0).artifacts(id))).toBe(0);
    expect(await fieldOf(lifecycle.redis, lifecycle.shards.at(0).delegation(id), "bytes")).toBe("0");
    lifecycle.clock.offset_ms += 2_000;
    await lifecycle.move("lease", id);
    for (const name of ["d", "e", "f"])
      expect(await send(lifecycle, id, [{ artifact: artifactOf(name, MB) }])).toBe("ok");
    expect((await shownOf(lifecycle, id)).artifacts).toHaveLength(3);
    await lifecycle.move("release", id);
    expect(await fieldOf(lifecycle.redis, lifecycle.shards.at(0).delegation(id), "bytes")).toBe("0");
  });

  test("survive a question and its answer, an unconfirmed lease, and the end", async () => {
    const lifecycle = await openLifecycle({ limits: { max_attempts: 1 } });
    const id = await lifecycle.inState("working");
    await send(lifecycle, id, [{ artifact: artifactOf("a", "1") }]);
    await lifecycle.move("interrupt", id);
    await lifecycle.move("answer", id);
    await lifecycle.move("lease", id);
    await lifecycle.move("unconfirm", id);
    await lifecycle.move("lease", id);
    expect((await shownOf(lifecycle, id)).artifacts).toEqual([artifactOf("a", "1")]);
    lifecycle.clock.offset_ms += 61_000;
    expect(await lifecycle.move("due", id)).toMatchObject({ move: "exhaust" });
    expect((await shownOf(lifecycle, id)).artifacts).toEqual([artifactOf("a", "1")]);
  });
});

test("the error of a failed attempt is in its event, and not on the live record", async () => {
  const lifecycle = await openLifecycle();
  const id = await lifecycle.inState("working");
  expect(await lifecycle.move("fail", id, { retryable: true })).toMatchObject({ move: "retry", attempt: 2 });
  expect(JSON.parse((await lifecycle.read(id))?.json ?? "").error).toBeNull();
});
