/** The program as a user runs it: `serve`, `work`, `delegate` and `watch` as processes. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import { describe, expect, inject, test } from "vitest";
import { client, request } from "../support/broker.ts";
import { errand, freshDir, serveIn } from "../support/program.ts";
import { openStream } from "../support/sse.ts";
import { allowStalls } from "../support/stalls.ts";
import { until } from "../support/until.ts";

const redisOf = (dir: string): string[] => {
  const list = execFileSync("ps", ["-eo", "stat,args"], { encoding: "utf8" });
  return list
    .split("\n")
    .filter((line) => line.includes(dir) && line.includes("redis") && !line.startsWith("Z"));
};

test("three terminals: work, delegate --wait prints the answer, watch shows every event", async () => {
  const dir = freshDir();
  await serveIn(dir);
  const work = errand(dir, ["work", "--agent", "scout", "--", "wc", "-w"]);
  await until(() => work.stderr().includes("working for scout"));
  const watch = errand(dir, ["watch"]);
  const json = errand(dir, ["watch", "--json"]);
  // Both streams are open once they have received an event of another delegation.
  await until(async () => {
    await errand(dir, ["delegate", "scout", "warm up", "--wait"]).ended();
    return watch.stdout().includes("completed in") && json.stdout().includes("DELEGATION_COMPLETE");
  });

  const delegate = errand(dir, ["delegate", "scout", "how many words is this", "--wait"]);
  expect(await delegate.ended()).toBe(0);
  expect(delegate.stdout()).toBe("5\n");
  await until(() => watch.stdout().includes("completed in") && watch.stdout().includes('"5"'));
  const id = /(\w+) {2}scout {2}queued "how many words is this"/.exec(watch.stdout())?.[1] ?? "none";
  const lines = watch
    .stdout()
    .split("\n")
    .filter((line) => line.includes(id));
  expect(lines.map((line) => line.split(/ {2,}/)[3]?.split(" ")[0])).toEqual([
    "queued",
    "leased",
    "completed",
  ]);
  for (const line of json.stdout().trim().split("\n")) expect(JSON.parse(line)).toHaveProperty("type");

  work.child.kill("SIGINT");
  expect(await work.ended()).toBe(130);
}, 120_000);

describe("errand work", () => {
  test("a failed command fails the delegation with the end of its output", async () => {
    const dir = freshDir();
    await serveIn(dir);
    const work = errand(dir, ["work", "--agent", "scout", "--", "sh", "-c", "echo oh no >&2; exit 3"]);
    await until(() => work.stderr().includes("working for scout"));
    const delegate = errand(dir, ["delegate", "scout", "try", "--wait"]);
    expect(await delegate.ended()).toBe(1);
    expect(delegate.stderr()).toContain("oh no");
  }, 120_000);

  test("a cancel stops the command at once; Ctrl-C returns the work", async () => {
    const dir = freshDir();
    const { url, token } = await serveIn(dir);
    const api = client(url, token);
    const marker = join(dir, "ended");
    const script = `trap 'echo term > ${marker}; exit 1' TERM; echo started; while :; do sleep 0.1; done`;
    const work = errand(dir, ["work", "--agent", "scout", "--", "sh", "-c", script]);
    await until(() => work.stderr().includes("working for scout"));
    const first = (await api.delegate("scout")).body.id;
    await until(async () => (await api.get(first)).body.progress?.message === "started");
    await api.cancel(first);
    await until(() => existsSync(marker));

    const second = (await api.delegate("scout")).body.id;
    await until(async () => (await api.get(second)).body.state === "working");
    work.child.kill("SIGINT");
    expect(await work.ended()).toBe(130);
    // At once if it was working; after confirm_within_seconds if the lease had not reached it yet.
    await until(async () => (await api.get(second)).body.state === "submitted");
    expect((await api.get(second)).body.attempt).toBe(1);
  }, 120_000);
});

describe("start and stop", () => {
  test("SIGTERM answers parked polls, ends streams, exits 0 within 10 s and stops Redis", async () => {
    const dir = freshDir();
    const { url, token, child, ended } = await serveIn(dir);
    const api = client(url, token);
    await api.agent("scout");
    const poll = api.lease("scout", { wait_seconds: 60 });
    await until(async () => (await api.call("GET", "/v1/agents/scout")).body.presence.pollers === 1);
    const stream = await openStream(`${url}/v1/events`, { token });
    const withStalls = allowStalls();
    const stoppedAt = Date.now();
    child.kill("SIGTERM");
    expect(await poll).toMatchObject({ status: 200, body: { leases: [] } });
    await stream.ended();
    expect(await ended()).toBe(0);
    expect(Date.now() - stoppedAt).toBeLessThan(withStalls(10_000));
    expect(redisOf(dir)).toEqual([]);
    expect(existsSync(join(dir, ".errand", "gateway.json"))).toBe(false);
  }, 120_000);

  test("kill -9 leaves no Redis running, and the next start has everything that was accepted", async () => {
    const dir = freshDir();
    const first = await serveIn(dir);
    const api = client(first.url, first.token);
    await api.agent("scout");
    const ids = await Promise.all(
      Array.from({ length: 50 }, async (_, n) => (await api.delegate("scout", { task: `${n}` })).body.id),
    );
    first.child.kill("SIGKILL");
    await until(() => redisOf(dir).length === 0);
    const second = await serveIn(dir);
    expect(second.token).toBe(first.token);
    const again = client(second.url, second.token);
    for (const id of ids) expect((await again.get(id)).body.state).toBe("submitted");
    expect((await again.lease("scout", { max: 32 })).body.leases).toHaveLength(32);
  }, 120_000);

  test("a second broker on the same data directory shares its Redis, outlives the first, and is then found", async () => {
    const dir = freshDir();
    const first = await serveIn(dir);
    await until(() =>
      first.stderr().includes(`the CLI finds this broker and its token in ${dir} and below\n`),
    );
    const second = await serveIn(dir);
    expect(redisOf(dir)).toHaveLength(1);
    // The CLI still uses the first, so the second says how to reach it now.
    const toUse = /to use this one now, set ERRAND_URL=(\S+) and ERRAND_TOKEN="\$\(cat '(.+)'\)"\n/;
    const [, url = "", tokenFile = ""] = await until(() => toUse.exec(second.stderr()));
    expect(second.stderr()).toContain(`the CLI here uses ${first.url} until that gateway stops; `);
    expect(second.stderr()).toContain(
      `\nthis is one more gateway of the broker at ${first.url}: both have the agents and the work in ${dir}/.errand; for a separate broker, stop this one and set ERRAND_DATA_DIR (--data-dir) to another folder\n`,
    );
    expect(first.stderr()).not.toContain("one more gateway");
    expect([url, readFileSync(tokenFile, "utf8").trim()]).toEqual([second.url, second.token]);
    await client(first.url, first.token).agent("scout");
    const { id } = (await client(second.url, second.token).delegate("scout")).body;
    expect((await client(first.url, first.token).get(id)).status).toBe(200);
    first.child.kill("SIGTERM");
    expect(await first.ended()).toBe(0);
    await until(async () => (await request(second.url, "GET", "/readyz", { token: null })).status === 200);
    expect((await client(second.url, second.token).get(id)).body.state).toBe("submitted");
    const announced = join(dir, ".errand", "gateway.json");
    await until(() => existsSync(announced) && readFileSync(announced, "utf8").includes(second.url));
    const get = errand(dir, ["get", id, "--json"]);
    expect([await get.ended(), get.stdout()]).toEqual([0, expect.stringContaining(id)]);

    const third = await serveIn(dir);
    // A killed gateway cannot remove its entry.
    second.child.kill("SIGKILL");
    await until(() => readFileSync(announced, "utf8").includes(third.url));
    third.child.kill("SIGTERM");
    expect(await third.ended()).toBe(0);
    expect(existsSync(announced)).toBe(false);
  }, 120_000);

  test("a killed Redis is restarted; until then the answer is 503 with a recovery", async () => {
    const withStalls = allowStalls();
    const dir = freshDir();
    const { url, token, child, ended } = await serveIn(dir);
    const api = client(url, token);
    await api.agent("scout");
    const { id } = (await api.delegate("scout")).body;
    expect((await api.lease("scout")).body.leases).toHaveLength(1);
    const stream = await openStream(`${url}/v1/events`, { token });
    // The stream has made its first read when it shows an event.
    await api.message(id, "go on");
    await until(() => stream.events.some(({ data }) => data.status === "message"));
    execFileSync("pkill", ["-9", "-f", join(dir, ".errand", "redis.sock")]);
    await until(async () => (await request(url, "GET", "/readyz", { token: null })).status === 200);
    expect((await api.get(id)).body.state).toBe("working");
    const parked = api.lease("scout", { wait_seconds: 30 });
    expect((await api.delegate("scout")).status).toBe(202);
    expect((await parked).body.leases).toHaveLength(1);
    // The stream from before continues.
    await stream.has("DELEGATION_SENT");
    await until(() => stream.events.some(({ data }) => data.status === "leased"));
    const stoppedAt = Date.now();
    child.kill("SIGTERM");
    expect(await ended()).toBe(0);
    expect(Date.now() - stoppedAt).toBeLessThan(withStalls(3_000));
  }, 120_000);

  test("private files are readable only by their owner", async () => {
    const dir = freshDir();
    await serveIn(dir);
    const mode = (name: string) => (statSync(join(dir, ".errand", name)).mode & 0o777).toString(8);
    expect([mode(""), mode("operator-token"), mode("gateway.json")]).toEqual(["700", "600", "600"]);
    expect(readFileSync(join(dir, ".errand", ".gitignore"), "utf8")).toBe("*\n");
  }, 120_000);

  test("all configuration problems are reported at once, with exit code 78", async () => {
    const run = errand(freshDir(), ["serve"], {
      ERRAND_PORT: "abc",
      ERRAND_PROT: "1",
      ERRAND_REDIS_FSYNC: "never",
      ERRAND_OPERATOR_TOKEN: "short",
      ERRAND_SHARDS: "300",
    });
    expect(await run.ended()).toBe(78);
    for (const name of ["ERRAND_PROT", "ERRAND_REDIS_FSYNC", "ERRAND_OPERATOR_TOKEN"]) {
      expect(run.stderr()).toContain(name);
    }
    expect(run.stderr()).toContain(
      "ERRAND_PORT: must be a whole number from 0 to 65535; 0 picks a free port\n",
    );
    expect(run.stderr()).toContain("ERRAND_SHARDS: must be a whole number from 1 to 256\n");
    expect(run.stderr()).not.toContain("short");
  });

  test("an operator token that no client can send is refused, with what is wrong with its file", async () => {
    const dir = freshDir();
    mkdirSync(join(dir, ".errand"));
    const file = join(dir, ".errand/operator-token");
    for (const [content, said] of [
      [
        Buffer.from("\uFEFFerrand_operator_token\r\n", "utf16le"),
        "is UTF-16 text. Save it as UTF-8; in PowerShell:",
      ],
      [
        "errand operator token",
        "contains no valid token (16 to 512 printable characters without spaces); delete it",
      ],
    ] as const) {
      writeFileSync(file, content);
      const run = errand(dir, ["serve"], { ERRAND_PORT: "0" });
      expect(await run.ended()).toBe(78);
      expect(run.stderr()).toContain(`${file} ${said}`);
    }
  }, 120_000);

  test("an address of another machine is reported as a configuration problem", async () => {
    const run = errand(freshDir(), ["serve"], { ERRAND_HOST: "192.0.2.1", ERRAND_PORT: "0" });
    expect(await run.ended()).toBe(78);
    expect(run.stderr()).toContain("ERRAND_HOST");
  }, 120_000);

  test("a start with another number of shards than the data's is refused", async () => {
    const dir = freshDir();
    const first = await serveIn(dir, { ERRAND_SHARDS: "4" });
    const api = client(first.url, first.token);
    for (const name of ["a", "b", "c", "d", "e"]) await api.agent(name);
    const { id } = (await api.delegate("c")).body;
    expect((await api.lease("c")).body.leases[0].delegation.id).toBe(id);
    first.child.kill("SIGTERM");
    await first.ended();
    const second = errand(dir, ["serve"], { ERRAND_PORT: "0", ERRAND_SHARDS: "2" });
    expect(await second.ended()).toBe(78);
    expect(second.stderr()).toContain("ERRAND_SHARDS=4");
  }, 120_000);

  test("a port that is in use is reported as such", async () => {
    const dir = freshDir();
    const { url } = await serveIn(dir);
    const other = errand(freshDir(), ["serve"], { ERRAND_PORT: new URL(url).port });
    expect(await other.ended()).toBe(78);
    expect(other.stderr()).toContain("EADDRINUSE");
    // Nothing was started that would have to be stopped.
    expect(other.stderr().trimEnd().split("\n")).toHaveLength(1);
  }, 120_000);

  test("a second broker at the address of the first, on the same data, reports the first", async () => {
    const dir = freshDir();
    const { url, child } = await serveIn(dir);
    const { port } = new URL(url);
    const second = errand(dir, ["serve"], { ERRAND_PORT: port });
    expect(await second.ended()).toBe(78);
    expect(second.stderr()).toMatch(
      new RegExp(
        `^errand: a broker is already running on .* at ${url} \\(process ${child.pid}\\); .* set ERRAND_PORT \\(0 picks a free port\\) and ERRAND_DATA_DIR; .*\n$`,
      ),
    );
    // It still answers, and the CLI still finds it.
    const listed = errand(dir, ["agent", "list"]);
    expect(await listed.ended()).toBe(0);
  }, 120_000);

  test("an external Redis that is unreachable, or may evict, is refused with a recovery", async () => {
    const dir = freshDir();
    const away = errand(dir, ["serve"], { ERRAND_PORT: "0", ERRAND_REDIS_URL: "redis://127.0.0.1:1" });
    expect(await away.ended()).toBe(75);
    expect(away.stderr()).toContain("ERRAND_REDIS_URL does not respond");
    // The run's own Redis plays an evicting cache during this test.
    const redis = new Redis(inject("redisSocket"));
    const url = `unix:${inject("redisSocket")}`;
    await redis.config("SET", "maxmemory-policy", "allkeys-lru");
    const cache = errand(dir, ["serve"], { ERRAND_PORT: "0", ERRAND_REDIS_URL: url });
    const code = await cache.ended();
    await redis.config("SET", "maxmemory-policy", "noeviction");
    redis.disconnect();
    expect(code).toBe(78);
    expect(cache.stderr()).toContain("maxmemory-policy is allkeys-lru");
  }, 120_000);
});

describe("the output of a command", () => {
  test("is returned as bytes if it is not text, and fails if it is too large", async () => {
    const dir = freshDir();
    await serveIn(dir);
    const agent = async (name: string, command: string) => {
      const work = errand(dir, ["work", "--agent", name, "--", "sh", "-c", command]);
      await until(() => work.stderr().includes(`working for ${name}`));
    };
    await agent("bytes", "printf 'caf\\351'");
    const bytes = errand(dir, ["delegate", "bytes", "x", "--wait"]);
    const chunks: Buffer[] = [];
    bytes.child.stdout?.on("data", (chunk) => chunks.push(chunk));
    expect(await bytes.ended()).toBe(0);
    expect(Buffer.concat(chunks).toString("latin1")).toBe("café");

    await agent("flood", "head -c 4000000 /dev/zero | tr '\\0' x");
    const flood = errand(dir, ["delegate", "flood", "x", "--wait"]);
    expect(await flood.ended()).toBe(1);
    expect(flood.stderr()).toContain("The output has 4000000 bytes; at most 3145728 are stored.");
  }, 120_000);
});
