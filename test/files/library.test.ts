/** Files by the library: uploads and downloads that continue, and files of handlers. */
import { randomBytes } from "node:crypto";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { StoredFiles } from "../../src/client/stored-files.ts";
import { Agent, Delegator, type ErrandApiError, type Handler } from "../../src/index.ts";
import { client, OPERATOR } from "../support/broker.ts";
import { fileCalls, sha256, startFileBroker } from "../support/files.ts";

/** A fetch whose first request of each kind breaks: `refuse` before it is sent, `lose` after it was served. */
function flaky(broken: Set<string>): typeof fetch {
  return async (input, init) => {
    const kind = `${init?.method ?? "GET"} ${new URL(String(input)).pathname.split("/")[2]}`;
    const breaks = broken.delete(kind);
    const response = await fetch(input, init);
    if (!breaks) return response;
    await response.body?.cancel();
    throw new TypeError("fetch failed", { cause: Object.assign(new Error("reset"), { code: "ECONNRESET" }) });
  };
}

/** Reaches the broker once: a first request that fails is not tried again. */
async function reach(delegator: Delegator) {
  for await (const _ of delegator.list()) return;
}

async function* chunks(bytes: Uint8Array, of: number) {
  for (let at = 0; at < bytes.length; at += of) yield bytes.subarray(at, at + of);
}

test.each(["bytes", "a stream"])(
  "an upload of %s continues after lost answers, and a download too",
  async (kind) => {
    const { url } = await startFileBroker();
    const bytes = new Uint8Array(randomBytes(5_000_000));
    const delegator = new Delegator({
      url,
      token: OPERATOR,
      fetch: flaky(new Set(["PATCH uploads", "GET files"])),
    });
    await reach(delegator);
    const seen: number[] = [];
    const part = await delegator.upload("a.bin", kind === "bytes" ? bytes : chunks(bytes, 70_000), {
      onProgress: (count) => seen.push(count),
    });
    expect(part).toMatchObject({ filename: "a.bin", metadata: { size: 5_000_000 } });
    expect(seen.at(-1)).toBe(5_000_000);
    expect(part.url).toContain(sha256(bytes));
    expect(Buffer.compare(await delegator.download(part).bytes(), bytes)).toBe(0);
  },
);

test("an upload whose first answer is lost counts once", async () => {
  const { url } = await startFileBroker();
  const delegator = new Delegator({ url, token: OPERATOR, fetch: flaky(new Set(["POST uploads"])) });
  await reach(delegator);
  await delegator.upload("a.bin", new Uint8Array(randomBytes(1_000)));
  const { body } = await fileCalls(url).call("GET", "/v1/files");
  expect([body.files.length, body.bytes]).toEqual([1, 1_000]);
});

test("a file whose deletion was answered in vain is deleted; one that never was there is not found", async () => {
  const { url } = await startFileBroker();
  const options = { url, token: OPERATOR, fetch: flaky(new Set(["DELETE files"])) };
  const delegator = new Delegator(options);
  const files = new StoredFiles(options);
  const { files: none } = await files.page();
  const { url: part = "" } = await delegator.upload("a.txt", "a");
  const id = part.slice(part.lastIndexOf("/") + 1);
  await files.delete(id);
  expect([none, (await files.page()).files]).toEqual([[], []]);
  await expect(files.delete(id)).rejects.toMatchObject({ code: "file_not_found" });
});

test("a download continues where the connection broke", async () => {
  const { url } = await startFileBroker();
  const bytes = new Uint8Array(randomBytes(3_000_000));
  const ranges: (string | null)[] = [];
  const cut: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    if (!String(input).includes("/files/")) return response;
    ranges.push(new Headers(init?.headers).get("range"));
    if (ranges.length > 2 || response.body === null) return response;
    let left = 1_000_000;
    const half = response.body.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform(chunk, controller) {
          left -= chunk.length;
          if (left < 0) controller.error(new TypeError("terminated"));
          else controller.enqueue(chunk);
        },
      }),
    );
    return new Response(half, response);
  };
  const delegator = new Delegator({ url, token: OPERATOR, fetch: cut });
  const part = await delegator.upload("a.bin", bytes);
  expect(Buffer.compare(await delegator.download(part).bytes(), bytes)).toBe(0);
  expect(ranges.map((range) => range === null)).toEqual([true, false, false]);
});

test("a download is whole if the connection breaks after the last byte of an answer without a length", async () => {
  const { url } = await startFileBroker();
  let breaks = 1;
  const fetchCut: typeof fetch = async (input, init) => {
    const answer = await fetch(input, init);
    if (!/\/files\/fil_/.test(String(input)) || breaks-- <= 0) return answer;
    const bytes = new Uint8Array(await answer.arrayBuffer());
    let isSent = false;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (!isSent) controller.enqueue(bytes);
        else controller.error(Object.assign(new Error("reset"), { code: "ECONNRESET" }));
        isSent = true;
      },
    });
    const headers = new Headers(answer.headers);
    headers.delete("content-length");
    return new Response(body, { status: answer.status, headers });
  };
  const delegator = new Delegator({ url, token: OPERATOR, fetch: fetchCut });
  const part = await delegator.upload("a.txt", "all of it");
  expect(await delegator.download(part).text()).toBe("all of it");
  expect(breaks).toBe(-1);
});

test("a refused upload says why and leaves nothing, and other servers get no token", async () => {
  const { url, gateway, stored } = await startFileBroker({ maxBytes: 1_000 });
  const delegator = new Delegator({ url, token: OPERATOR });
  const code = (error: ErrandApiError) => error.code;
  const large = new Uint8Array(1_001);
  expect(await delegator.upload("a", large).catch(code)).toBe("payload_too_large");
  expect(await delegator.upload("a", chunks(large, 100)).catch(code)).toBe("payload_too_large");
  expect(await delegator.upload("a", "x", { sha256: sha256("y") }).catch(code)).toBe("hash_mismatch");
  async function* broken(): AsyncGenerator<Uint8Array> {
    yield new Uint8Array(10);
    throw new Error("the disk of the caller");
  }
  await expect(delegator.upload("a", broken())).rejects.toThrow("the disk of the caller");
  await gateway.fileUpkeep.tick();
  expect(await stored()).toEqual([]);
  expect((await fileCalls(url).call("GET", "/v1/files")).body.bytes).toBe(0);
  const foreign = delegator.download({ url: "https://elsewhere.example/a.png" });
  expect(await foreign.bytes().catch(code)).toBe("invalid_request");
});

test("a handler reads files, sends small ones in the artifact, and large ones beside it", async () => {
  const { url } = await startFileBroker();
  await client(url).agent("scout");
  const delegator = new Delegator({ url, token: OPERATOR });
  const log = "line\n".repeat(200_000);
  const agent = new Agent({ url, token: OPERATOR, agent: "scout" }, async (work) => {
    const text = await work.delegator.download(work.message).text();
    await work.file("small.txt", "small");
    await work.file("log.txt", text);
    return `${text.length} characters`;
  });
  const part = await delegator.upload("log.txt", log);
  const { id } = await delegator.delegate({ target: "scout", message: { parts: [part] } });
  const run = agent.run();
  const done = await delegator.wait(id);
  await agent.stop();
  await run;
  expect(done.reply?.parts).toEqual([{ text: "1000000 characters" }]);
  const [small, large] = done.artifacts;
  expect(small?.parts[0]?.raw).toBeDefined();
  expect(large?.parts[0]).toMatchObject({
    filename: "log.txt",
    mediaType: "text/plain",
    metadata: { size: 1_000_000 },
  });
  expect(await delegator.download(large ?? { parts: [] }).text()).toBe(log);
});

describe("a storage that is away for longer than calls are retried", () => {
  /** A fetch whose requests for files get 503 so often; each time, a minute passes. */
  function awayFor(failures: number): typeof fetch {
    const now = performance.now.bind(performance);
    let passed = 0;
    const clock = vi.spyOn(performance, "now").mockImplementation(() => now() + passed);
    onTestFinished(() => clock.mockRestore());
    let left = failures;
    return async (input, init) => {
      if (left === 0 || !/\/(?:files|uploads)/.test(String(input))) return fetch(input, init);
      left -= 1;
      passed += 60_000;
      return new Response("<h1>Bad Gateway</h1>", { status: 502 });
    };
  }

  test.each<[string, Handler]>([
    [
      "that reads a file",
      async (work) => String((await work.delegator.download(work.message).bytes()).length),
    ],
    [
      "that returns a file",
      async (work) => {
        await work.file("a.bin", new Uint8Array(600_000));
        return "600000";
      },
    ],
  ])("delays a handler %s, and does not fail its work", async (_what, handler) => {
    const { url } = await startFileBroker();
    await client(url).agent("scout");
    const delegator = new Delegator({ url, token: OPERATOR });
    const part = await delegator.upload("a.bin", new Uint8Array(600_000));
    const options = { url, token: OPERATOR, agent: "scout", leaseSeconds: 3_600, fetch: awayFor(2) };
    const agent = new Agent(options, handler);
    const { id } = await delegator.delegate({ target: "scout", message: { parts: [part] } });
    const run = agent.run();
    const done = await delegator.wait(id);
    await agent.stop();
    await run;
    expect(done).toMatchObject({ state: "completed", attempt: 1, reply: { parts: [{ text: "600000" }] } });
  });
});
