/**
 * Uploads and downloads many large files while the gateways of a broker are replaced one after the other: each file arrives
 * whole, none twice, and the memory of the gateways and of Redis does not grow with them. Needs a build. Not a test.
 * Usage: node --import tsx test/files/prove.ts [--files N] [--mib N]
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { Admin, Agent, Delegator, ErrandApiError } from "../../src/index.ts";

const MAIN = fileURLToPath(new URL("../../dist/errand.js", import.meta.url));
const MIB = 1024 * 1024;
const { values } = parseArgs({
  options: { files: { type: "string", default: "11" }, mib: { type: "string", default: "94" } },
});
const [FILES, BYTES] = [Number(values.files), Number(values.mib) * MIB];
const REPLACE_EVERY_MS = 4_000;
/** Beside the stable memory of a gateway: what is on its way, and what the collector has not freed. */
const MOST_GROWTH_MIB = 150;

const folder = mkdtempSync(join(tmpdir(), "errand-prove-files-"));
const broker = spawn(process.execPath, [MAIN, "serve"], {
  cwd: folder,
  env: { PATH: process.env.PATH, ERRAND_PORT: "0", ERRAND_WORKERS: "2", ERRAND_LOG_LEVEL: "error" },
  stdio: ["ignore", "ignore", "pipe"],
});
let printed = "";
broker.stderr.on("data", (chunk) => {
  printed += chunk;
});

/** The memory of the broker's processes, MiB, by what they are. */
function memory(): { gateway: number; redis: number } {
  const most = { gateway: 0, redis: 0 };
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
      const parent = Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
      const rss =
        Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024;
      const isRedis = /redis-server|valkey-server/.test(command);
      if (isRedis && command.includes(folder)) most.redis = Math.max(most.redis, rss);
      else if (parent === broker.pid && !isRedis) most.gateway = Math.max(most.gateway, rss);
    } catch {
      // It has ended meanwhile.
    }
  }
  return most;
}

/** The content of file `n`: never the same block twice, and quick to make. */
async function* contentOf(n: number, bytes = BYTES): AsyncGenerator<Uint8Array> {
  const block = Buffer.alloc(MIB, `${n}:`);
  for (let at = 0; at < bytes; at += MIB) {
    block.writeDoubleLE(at + n, 0);
    yield Uint8Array.from(block.subarray(0, Math.min(MIB, bytes - at)));
  }
}

async function hashOf(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of chunks) hash.update(chunk);
  return hash.digest("hex");
}

function check(what: string, isRight: boolean): void {
  console.log(`${isRight ? "ok  " : "FAIL"} ${what}`);
  if (!isRight) process.exitCode = 1;
}

let isOver = false;
let replaced = 0;
try {
  while (!printed.includes("errand is ready at")) {
    if (broker.exitCode !== null) throw new Error(`the broker did not start: ${printed}`);
    await sleep(100);
  }
  const url = /errand is ready at (\S+)/.exec(printed)?.[1] ?? "";
  const token = readFileSync(join(folder, ".errand", "operator-token"), "utf8").trim();
  let retries = 0;
  const delegator = new Delegator({ url, token, retryForMs: 120_000, onRetry: () => (retries += 1) });
  await new Admin({ url, token }).putAgent("scout");
  await delegator.download(await delegator.upload("warm", contentOf(0, 20 * MIB))).bytes();
  const before = memory();
  const most = { gateway: 0, redis: 0 };
  const watching = (async () => {
    while (!isOver) {
      const now = memory();
      most.gateway = Math.max(most.gateway, now.gateway);
      most.redis = Math.max(most.redis, now.redis);
      await sleep(250);
    }
  })();
  const replacing = (async () => {
    while (!isOver) {
      await sleep(REPLACE_EVERY_MS);
      broker.kill("SIGHUP");
      replaced += 1;
    }
  })();
  const startedAt = performance.now();
  const numbers = Array.from({ length: FILES }, (_, n) => n + 1);
  const hashes = await Promise.all(numbers.map((n) => hashOf(contentOf(n))));
  const agent = new Agent({ url, token, agent: "scout" }, async (work) => {
    const [file = {}] = work.message.parts;
    const hash = await hashOf(work.delegator.download(file));
    await work.file("copy", work.delegator.download(file));
    return hash;
  });
  const running = agent.run();
  let [up, down, back] = [0, 0, 0];
  const passOne = async (n: number): Promise<void> => {
    const part = await delegator.upload(`${n}.bin`, contentOf(n), { sha256: hashes[n - 1] });
    up += 1;
    const { id } = await delegator.delegate({ target: "scout", message: { parts: [part] } });
    const { reply, artifacts } = await delegator.wait(id);
    if (reply?.parts[0]?.text === hashes[n - 1]) down += 1;
    const [copy = { parts: [] }] = artifacts;
    if ((await hashOf(delegator.download(copy))) === hashes[n - 1]) back += 1;
  };
  // Three at a time, as three callers would.
  const queue = numbers.slice();
  const lane = async (): Promise<void> => {
    for (let n = queue.shift(); n !== undefined; n = queue.shift()) await passOne(n);
  };
  await Promise.all([lane(), lane(), lane()]);
  const seconds = (performance.now() - startedAt) / 1000;
  const refusal = await delegator
    .upload("too large", contentOf(99, 101 * MIB))
    .catch((error: unknown) => (error instanceof ErrandApiError ? error.code : String(error)));
  await agent.stop();
  await running;
  isOver = true;
  await Promise.all([watching, replacing]);
  const gib = ((FILES * BYTES) / 1024 / MIB).toFixed(2);
  console.log(
    `${FILES} files, ${gib} GiB, in ${seconds.toFixed(0)} s; ${replaced} replacements, ${retries} retries`,
  );
  console.log(`gateway ${before.gateway.toFixed(0)} MiB before, ${most.gateway.toFixed(0)} MiB at most`);
  console.log(`Redis ${before.redis.toFixed(0)} MiB before, ${most.redis.toFixed(0)} MiB at most`);
  check("each file is uploaded", up === FILES);
  check("the agent reads the same bytes", down === FILES);
  check("its copy comes back the same", back === FILES);
  check("a file above the limit is refused", refusal === "payload_too_large");
  check("gateways were replaced meanwhile", replaced > 2);
  check(
    "the memory of a gateway does not grow with the files",
    most.gateway < before.gateway + MOST_GROWTH_MIB,
  );
  check("that of Redis does not", most.redis < before.redis + 10);
} finally {
  isOver = true;
  broker.kill("SIGTERM");
  await new Promise((done) => broker.once("exit", done));
  rmSync(folder, { recursive: true, force: true });
}
