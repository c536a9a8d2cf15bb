/** A full disk, on a small tmpfs. Mounting needs root; without it these tests are skipped. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { startEmbedded } from "../../src/redis/embedded/embedded.ts";
import { run } from "../cli/fake-host.ts";
import { client, OPERATOR, request, startBroker } from "../support/broker.ts";
import { startServer } from "../support/redis-pair.ts";
import { testRedisBinary } from "../support/redis-server.ts";
import { retryUntilAnswered } from "../support/retry.ts";
import { until } from "../support/until.ts";

const MIB = 1024 * 1024;

/** A directory with this much space, or null if it cannot be created. */
function smallDisk(bytes: number): string | null {
  const dir = mkdtempSync(join(tmpdir(), "errand-disk-"));
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${bytes}`, "tmpfs", dir], { stdio: "ignore" });
    return dir;
  } catch {
    rmdirSync(dir);
    return null;
  }
}

function unmount(dir: string): void {
  execFileSync("umount", ["-l", dir]);
  rmdirSync(dir);
}

const probe = process.platform === "linux" ? smallDisk(MIB) : null;
if (probe !== null) unmount(probe);

/** Uses all the remaining space; the returned function frees it. */
function fill(dir: string): () => void {
  const path = join(dir, "filler");
  writeFileSync(path, "");
  for (const size of [256 * 1024, 4096]) {
    try {
      for (;;) writeFileSync(path, Buffer.alloc(size), { flag: "a" });
    } catch {
      // As full as writes of this size can make it.
    }
  }
  return () => rmSync(path);
}

const ready = (url: string) => request(url, "GET", "/readyz", { token: null });
const big = { task: "x".repeat(64 * 1024) };

test.skipIf(probe === null)(
  "with everysec a full disk is answered 503, and work continues once there is room",
  async () => {
    const dir = smallDisk(8 * MIB) ?? "";
    onTestFinished(() => unmount(dir));
    const { socket } = await startServer(["appendonly yes", "appendfsync everysec"], dir);
    const { url } = await startBroker({ redis: { socket } });
    const api = client(url);
    await api.agent("scout");
    const { id } = (await api.delegate("scout")).body;
    const makeRoom = fill(dir);
    const refused = await until(async () => {
      const answer = await api.delegate("scout", big);
      return answer.status === 503 ? answer : null;
    });
    expect(refused.body).toMatchObject({ code: "redis_unavailable", details: { outcome: "not_executed" } });
    const unready = await ready(url);
    expect([unready.status, unready.body.reason]).toEqual([503, expect.stringContaining("MISCONF")]);
    expect((await api.get(id)).status).toBe(200);
    makeRoom();
    await until(async () => (await ready(url)).status === 200);
    expect((await retryUntilAnswered(() => api.delegate("scout"))).status).toBe(202);
  },
);

test.skipIf(probe === null)(
  "with always Redis exits instead of acknowledging; with room it returns, and nothing acknowledged is lost",
  async () => {
    const dir = smallDisk(8 * MIB) ?? "";
    onTestFinished(() => unmount(dir));
    const logged: Record<string, unknown>[] = [];
    const embedded = await startEmbedded({
      dataDir: join(dir, "data"),
      fsync: "always",
      binary: testRedisBinary,
      log: (_level, message, fields = {}) => logged.push({ message, ...fields }),
    });
    onTestFinished(() => embedded.stop());
    const { url } = await startBroker({
      redis: { socket: embedded.socket, password: embedded.password },
      dataDir: dir,
    });
    const api = client(url);
    await api.agent("scout");
    const accepted: string[] = [];
    const makeRoom = fill(dir);
    await until(async () => {
      const answer = await api.delegate("scout", big).catch(() => null);
      if (answer?.status === 202) accepted.push(answer.body.id);
      return answer?.status === 503;
    });
    const ended = await until(() => logged.find(({ message }) => String(message).startsWith("Redis ended")));
    // The log of Redis is on the same disk, so its last words may be missing.
    expect(ended).toMatchObject({ disk_free_bytes: expect.any(Number) });
    expect(Number(ended.disk_free_bytes)).toBeLessThan(8 * MIB);
    const unready = await until(async () => {
      const answer = await ready(url);
      return answer.status === 503 ? answer : null;
    });
    expect(unready.body.reason).toContain("the disk of the data directory is nearly full");
    makeRoom();
    const after = await retryUntilAnswered(() => api.delegate("scout"));
    expect(after.status).toBe(202);
    const { redis } = (await retryUntilAnswered(() => api.call("GET", "/v1/status"))).body;
    expect(redis.disk_free_bytes).toBeLessThan(redis.disk_total_bytes);
    const cli = await run(["status"], { env: { url, token: OPERATOR, dataDir: "/nonexistent" } });
    expect(cli.stdout).toMatch(/the data directory's disk has [\d.]+ MiB left: make room, or Redis ends/);
    for (const id of accepted) expect((await retryUntilAnswered(() => api.get(id))).status).toBe(200);
  },
  30_000,
);
