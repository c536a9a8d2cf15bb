/** `errand work` against a real gateway: concurrency, leases, large and binary output, failed starts. */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { as } from "../../support/broker.ts";
import { until } from "../../support/until.ts";
import { lines, setup } from "./cli.ts";

const sh = (script: string) => ["sh", "-c", script];

test("the token of another principal: only the refusal is printed", async () => {
  const { api, url, run } = await setup();
  await api.agent("scout");
  const { token } = await as(url, "agent:other");
  const { code, stdout, stderr } = await run(["work", "--agent", "scout", "--", "cat"], { token });
  expect([code, stdout]).toEqual([77, ""]);
  expect(stderr).toMatch(/^errand: Only agent:scout and the operator may .*\n$/);
});

describe("options", () => {
  test("--concurrency runs that many at once", async () => {
    const { api, dir, worker } = await setup();
    // None of them ends before all three have started.
    const script =
      'touch "begun-$ERRAND_DELEGATION_ID"; until [ $(ls | grep -c begun-) = 3 ]; do sleep 0.1; done; echo met';
    await worker("trio", "--concurrency", "3", "--", ...sh(script));
    const ids: string[] = [];
    for (const task of ["a", "b", "c"]) ids.push((await api.delegate("trio", { task })).body.id);
    for (const id of ids) {
      expect((await api.get(id, "?wait_seconds=30")).body.reply.parts).toEqual([{ text: "met" }]);
    }
    expect(readdirSync(dir).filter((name) => name.startsWith("begun-"))).toHaveLength(3);
  });

  test("--lease sets the duration of the lease, --worker-id its holder; Ctrl-C releases it", async () => {
    const { api, worker } = await setup();
    const work = await worker(
      "scout",
      "--lease",
      "20",
      "--worker-id",
      "me",
      "--",
      ...sh("echo up; exec sleep 60"),
    );
    const { id } = (await api.delegate("scout")).body;
    const { lease } = await until(
      async () => {
        const { body } = await api.get(id);
        return body.progress?.message === "up" && body;
      },
      { timeoutMs: 50_000 },
    );
    expect(lease.worker_id).toBe("me");
    const left = Date.parse(lease.expires_at) - Date.now();
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThan(21_000);
    work.child.kill("SIGINT");
    expect(await work.ended()).toBe(130);
    expect((await api.get(id)).body).toMatchObject({ state: "submitted", attempt: 1, lease: null });
    expect(work.stderr()).toContain(`released ${id}`);
  });

  test("--once ends after one, --json prints JSON lines", async () => {
    const { api, run } = await setup();
    await api.agent("scout");
    const { id } = (await api.delegate("scout", { task: "a b" })).body;
    const { code, stdout, stderr } = await run([
      "work",
      "--agent",
      "scout",
      "--once",
      "--json",
      "--",
      "wc",
      "-w",
    ]);
    expect([code, stderr]).toEqual([0, ""]);
    const event = z.looseObject({ event: z.string(), delegation_id: z.string() });
    expect(lines(event, stdout)).toMatchObject([
      { event: "leased", delegation_id: id, attempt: 1 },
      { event: "replied", delegation_id: id, state: "completed" },
    ]);
    expect((await api.get(id)).body.reply.parts).toEqual([{ text: "2" }]);
  });
});

describe("output", () => {
  const digest = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

  test("that is large becomes an artifact, and is printed unchanged", async () => {
    const { api, run, worker } = await setup();
    await worker("flood", ...sh("seq 1 60000"));
    const { code, stdout, stderr } = await run(["delegate", "flood", "x", "--wait"]);
    expect([code, stderr]).toEqual([0, ""]);
    const whole = `${Array.from({ length: 60_000 }, (_, n) => n + 1).join("\n")}\n`;
    expect(digest(Buffer.from(stdout))).toBe(digest(Buffer.from(whole)));
    const [made] = (await api.call("GET", "/v1/delegations")).body.delegations;
    expect(made.artifacts).toMatchObject([{ artifactId: "stdout", name: "stdout" }]);
    expect(made.reply.parts[0].text).toBe(`The output is the artifact 'stdout': ${whole.length} bytes.`);
    const shown = await run(["get", made.id]);
    expect(shown.stdout).toMatch(
      /^artifact +stdout \(340\.7 KiB\): 'errand get dlg_\S+ --artifact stdout -o stdout'$/m,
    );
  });

  test("that is binary is printed as bytes", async () => {
    const { api, dir, start, worker } = await setup();
    const bytes = Uint8Array.from({ length: 4096 }, (_, n) => (n * 7) % 256);
    writeFileSync(join(dir, "blob"), bytes);
    await worker("bytes", "cat", "blob");
    const delegate = start(["delegate", "bytes", "x", "--wait"]);
    const chunks: Buffer[] = [];
    delegate.child.stdout?.on("data", (chunk) => chunks.push(chunk));
    expect(await delegate.ended()).toBe(0);
    expect(digest(Buffer.concat(chunks))).toBe(digest(readFileSync(join(dir, "blob"))));
    const [{ id }] = (await api.call("GET", "/v1/delegations")).body.delegations;
    const again = start(["get", id, "--reply"]);
    const more: Buffer[] = [];
    again.child.stdout?.on("data", (chunk) => more.push(chunk));
    expect(await again.ended()).toBe(0);
    expect(Buffer.concat(more)).toEqual(Buffer.concat(chunks));
  });

  test("of several requests is printed whole; beyond the bound it fails", async () => {
    const { api, run, worker } = await setup();
    await worker("flood", ...sh("head -c \"$ERRAND_TASK\" /dev/zero | tr '\\0' x"));
    const whole = await run(["delegate", "flood", "3000000", "--wait"]);
    expect([whole.code, whole.stderr]).toEqual([0, ""]);
    expect(whole.stdout === "x".repeat(3_000_000)).toBe(true);
    const { id } = (await api.delegate("flood", { task: "4000000" })).body;
    const { state, error, artifacts } = (await api.get(id, "?wait_seconds=30")).body;
    expect([state, error.code]).toEqual(["failed", "output_too_large"]);
    expect(artifacts[0].parts[0].text.length).toBeGreaterThan(900 * 1024);
  });
});

test("a command that cannot start, and an agent of another token, end it at once", async () => {
  const { api, run } = await setup();
  const missing = await run(["work", "--agent", "scout", "--", "no-such-command-anywhere"]);
  expect(missing.code).toBe(78);
  await api.agent("other");
  const { token } = (await api.call("POST", "/v1/tokens", { principal: "agent:scout" })).body;
  const foreign = await run(["work", "--agent", "other", "--once", "--", "cat"], { token });
  expect([foreign.code, foreign.stdout]).toEqual([77, ""]);
  expect(foreign.stderr).toContain("Set ERRAND_TOKEN or --token");
});
