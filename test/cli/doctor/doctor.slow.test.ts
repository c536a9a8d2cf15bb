/** `errand doctor`, with and without a broker. */

import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { clockCheck, redisChecks, versionCheck } from "../../../src/cli/doctor/broker.ts";
import { type Check, checkSchema } from "../../../src/cli/doctor/check.ts";
import { diskCheck, nodeCheck, redisHereChecks } from "../../../src/cli/doctor/local.ts";
import { ERRORS } from "../../../src/schema/errors.ts";
import { DISK_LOW_BYTES } from "../../../src/schema/status.ts";
import { stubBroker } from "../../client/stub-broker.ts";
import { as } from "../../support/broker.ts";
import { startOwnRedis } from "../../support/own-redis.ts";
import { errand, freshDir, serveIn } from "../../support/program.ts";
import { lines, setup } from "../broker/cli.ts";

const byName = (stdout: string) =>
  Object.fromEntries(lines(checkSchema, stdout).map((check) => [check.check, check]));
const statuses = (checks: Record<string, Check>) =>
  Object.fromEntries(Object.entries(checks).map(([name, { status }]) => [name, status]));

async function doctor(dir: string, args: string[] = [], env: Record<string, string> = {}) {
  const run = errand(dir, ["doctor", "--json", ...args], env);
  const code = await run.ended();
  const checks = byName(run.stdout());
  // Every problem has a fix.
  for (const { status, remedy, category } of Object.values(checks)) {
    expect(remedy !== undefined).toBe(status === "warn" || status === "fail");
    expect(category !== undefined).toBe(status === "fail");
  }
  return { code, checks, stderr: run.stderr() };
}

describe("without a broker", () => {
  test("it says so, exits 75, and shows which Redis a broker would use", async () => {
    const { code, checks, stderr } = await doctor(freshDir());
    expect([code, stderr]).toEqual([75, ""]);
    const skip = { token: "skip", version: "skip", clock: "skip" };
    expect(statuses(checks)).toEqual({
      node: "ok",
      settings: "ok",
      data_dir: "ok",
      broker: "fail",
      ...skip,
      redis: expect.stringMatching(/^(?:ok|warn)$/),
    });
    expect(checks.broker?.remedy).toContain("errand serve");
    expect(checks.redis?.detail).toContain("embedded");
  });

  test("wrong settings, readable secrets and a bad Redis are reported together; the configuration sets the exit code", async () => {
    const dir = freshDir();
    mkdirSync(join(dir, ".errand"));
    writeFileSync(join(dir, ".errand", "operator-token"), "errand_operator_xxxxxxxxxxxx\n");
    chmodSync(join(dir, ".errand"), 0o755);
    chmodSync(join(dir, ".errand", "operator-token"), 0o644);
    const env = { ERRAND_PROT: "1", ERRAND_REDIS_URL: "redis://:hush@127.0.0.1:1" };
    const { code, checks } = await doctor(dir, [], env);
    expect(code).toBe(78);
    expect(statuses(checks)).toMatchObject({
      settings: "fail",
      data_dir: "fail",
      broker: "fail",
      redis: "fail",
    });
    expect(checks.settings?.detail).toContain("ERRAND_PROT: unknown variable");
    expect(checks.data_dir?.remedy).toContain(`chmod go= ${join(dir, ".errand")}`);
    expect(checks.redis?.detail).toContain("127.0.0.1:1: it does not respond");
    expect(checks.redis).toMatchObject({
      remedy: expect.stringMatching(/^Start that Redis/),
      category: "TRANSPORT",
    });
    expect(JSON.stringify(checks)).not.toContain("hush");
  });

  test("a data directory that is a file, or a link to nothing, is a configuration problem", async () => {
    const dir = freshDir();
    writeFileSync(join(dir, "file"), "");
    symlinkSync(join(dir, "missing"), join(dir, "link"));
    for (const name of ["file", "link"]) {
      const { code, checks } = await doctor(dir, [], { ERRAND_DATA_DIR: join(dir, name) });
      expect(code).toBe(78);
      expect(checks.data_dir).toMatchObject({ status: "fail", detail: `${join(dir, name)} is not a folder` });
    }
  });

  test("the settings of an external Redis are checked", async () => {
    const { redis, target } = await startOwnRedis();
    await redis.config("SET", "maxmemory-policy", "allkeys-lru");
    // A socket's URL carries no password.
    await redis.config("SET", "requirepass", "");
    const { checks } = await doctor(freshDir(), [], { ERRAND_REDIS_URL: `unix:${target.socket}` });
    expect(checks.redis).toMatchObject({ status: "fail", category: "CONFIG" });
    expect(checks.redis?.detail).toContain("maxmemory-policy is allkeys-lru");
  });
});

describe("with a broker", () => {
  test("a broker that `errand serve` started passes all checks", async () => {
    const dir = freshDir();
    const { url } = await serveIn(dir);
    const { code, checks } = await doctor(dir);
    expect(code).toBe(0);
    const { links, mail, ...others } = statuses(checks);
    expect(new Set(Object.values(others))).toEqual(new Set(["ok"]));
    expect([links, mail]).toEqual(["skip", "skip"]);
    expect(checks.links?.detail).toContain("ERRAND_PUBLIC_URL");
    expect(checks.mail?.detail).toContain("ERRAND_SMTP_URL");
    // `gateways` is for several on one port; the proxies are shown where one is set.
    const absent = [
      "program",
      "adapter",
      "sign_in",
      "gateways",
      "readiness",
      "proxy",
      "egress_proxy",
      "disk",
    ];
    expect([...Object.keys(checks), ...absent].sort()).toEqual([...checkSchema.shape.check.options].sort());
    expect(checks.broker?.detail).toContain(url);
    expect(checks.token?.detail).toMatch(/operator-token, for operator$/);
    expect(checks.redis?.detail).toMatch(/^embedded: (?:redis|valkey) \d/);
    expect(checks.redis_durability?.detail).toContain("fsync always");
    expect(checks.redis_memory?.detail).toMatch(/^\d+ MiB of \d+ MiB used$/);

    const shown = errand(dir, ["doctor"]);
    expect(await shown.ended()).toBe(0);
    expect(shown.stdout().split("\n")[0]).toMatch(/^ok {4}node {2,}\d+/);
  });

  test("the token's principal is shown; checks that it may not see are skipped; a wrong token exits 77", async () => {
    const { run, url } = await setup();
    const { token } = await as(url, "caller:bob");
    const bob = await run(["doctor", "--json"], { token });
    const checks = byName(bob.stdout);
    expect(checks.token?.detail).toBe("from ERRAND_TOKEN, for caller:bob");
    expect(checks.redis?.status).toBe("skip");
    expect(checks.data_dir?.status).toBe("skip");
    expect(bob.code).toBe(0);

    const wrong = await run(["doctor", "--json", "--token", "wrong"]);
    expect(wrong.code).toBe(77);
    expect(byName(wrong.stdout)).toMatchObject({ broker: { status: "ok" }, token: { status: "fail" } });
    const none = await doctor(freshDir(), ["--url", url]);
    expect([none.code, none.checks.token?.status]).toEqual([77, "fail"]);
  });

  test("a server that is not a broker is reported as such", async () => {
    const stub = await stubBroker((_request, answer) => answer.json({ hello: "world" }));
    const { code, checks } = await doctor(freshDir(), ["--url", stub.url, "--token", "x"]);
    expect([code, checks.broker?.status]).toEqual([78, "fail"]);
  });
});

test("a fix is for the user of the terminal, and does not refer to doctor again", async () => {
  const away = await stubBroker((request, answer) => {
    if (request.path === "/healthz") answer.json({ status: "ok" });
    else
      answer.problem(503, "redis_unavailable", "TRANSPORT", {
        retry_after: 1,
        recovery: ERRORS.overloaded.recovery,
      });
  });
  const gone = await stubBroker(() => undefined);
  await gone.close();
  const suspended = await doctor(freshDir(), ["--url", away.url, "--token", "x"]);
  expect(suspended.checks.redis?.remedy).toContain("Check that the broker's Redis runs, is not suspended");
  const down = await doctor(freshDir(), ["--url", gone.url, "--token", "x"]);
  expect(down.checks.broker?.remedy).toBe(
    "Start a broker with 'npm start' in Errand's folder or 'errand serve', or correct --url or ERRAND_URL.",
  );
});

test("a degraded broker is a warning of its own, and no text names an HTTP header", async () => {
  const stub = await stubBroker((request, answer) => {
    if (request.path === "/healthz") answer.json({ status: "ok" });
    else if (request.path === "/readyz") answer.json({ status: "degraded", reason: "Redis is away: gone." });
    else answer.problem(503, "redis_unavailable", "TRANSPORT", { recovery: ERRORS.overloaded.recovery });
  });
  const { checks } = await doctor(freshDir(), ["--url", stub.url, "--token", "x"]);
  expect(checks.readiness).toMatchObject({
    status: "warn",
    detail: "the broker is degraded: Redis is away: gone",
  });
  expect(checks.redis?.detail).toMatch(/[^.] \(Redis is away: gone\)\.$/);
  const other = errand(freshDir(), ["list", "--url", stub.url, "--token", "x"]);
  expect(await other.ended()).toBe(75);
  expect(other.stderr()).toContain("Try again later; 'errand doctor' checks");
  expect(other.stderr()).not.toContain("Retry-After");
});

describe("checks", () => {
  const REDIS = {
    source: "external",
    product: "valkey",
    version: "8.0.1",
    maxmemory_policy: "noeviction",
    maxmemory_bytes: 100 * 1024 * 1024,
    used_memory_bytes: 1,
    appendonly: true,
    appendfsync: "always",
    latency_ms: 0.4,
  } as const;
  const bad = (changed: object) =>
    [...redisChecks({ ...REDIS, ...changed })].filter(({ status }) => status !== "ok");

  test("of Redis", () => {
    expect(bad({})).toEqual([]);
    expect(bad({ maxmemory_policy: "allkeys-lru" })).toMatchObject([
      { check: "redis_eviction", status: "fail" },
    ]);
    expect(bad({ appendonly: false })).toMatchObject([{ check: "redis_durability", status: "warn" }]);
    expect(bad({ appendfsync: "everysec" })).toMatchObject([{ check: "redis_durability", status: "warn" }]);
    expect(bad({ maxmemory_bytes: 0 })).toMatchObject([{ check: "redis_memory", status: "warn" }]);
    const full = { used_memory_bytes: 80 * 1024 * 1024 };
    expect(bad(full)).toMatchObject([{ check: "redis_memory", status: "fail", category: "TRANSPORT" }]);
    const found = { detail: "external: redis 7.2.0 at a:1", refused: [], warnings: ["appendonly is off"] };
    expect([...redisHereChecks(found)]).toMatchObject([{ status: "warn" }]);
  });

  test("of the disk, where space is short", () => {
    const of = (free: number) => [...diskCheck("/data", free, 2 ** 40)];
    expect(of(DISK_LOW_BYTES)).toEqual([]);
    expect(of(100 * 2 ** 20)).toMatchObject([
      {
        check: "disk",
        status: "warn",
        detail: "the disk of /data is nearly full: 100 MiB of 1024 GiB are free",
      },
    ]);
    expect(of(0)).toMatchObject([{ status: "fail", category: "TRANSPORT" }]);
    expect(bad({ disk_free_bytes: 1, disk_total_bytes: 2 })).toMatchObject([
      { check: "disk", status: "fail" },
    ]);
  });

  test("of Node, versions and clocks", () => {
    expect(nodeCheck("20.18.9")).toMatchObject({ status: "fail", category: "CONFIG" });
    expect([nodeCheck("20.19.0").status, nodeCheck("22.1.0").status]).toEqual(["ok", "ok"]);
    expect(versionCheck("1.0.0", "1.0.1").status).toBe("warn");
    expect(clockCheck(61_000, 5)).toMatchObject({
      status: "warn",
      detail: "the broker's clock is 1 min 1 s ahead of this machine's",
    });
    expect(clockCheck(-3_000, 5).detail).toContain("behind");
    // A slow response leaves the skew uncertain.
    expect(clockCheck(3_000, 1_500).status).toBe("ok");
  });
});
