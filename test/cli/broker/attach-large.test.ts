/** `errand delegate --attach` at a broker that stores files: large ones and folders. */
import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { FileChangedError, uploadFile } from "../../../src/cli/files/upload-file.ts";
import { Delegator } from "../../../src/client/delegator.ts";
import { OPERATOR } from "../../support/broker.ts";
import { fileCalls, sha256 } from "../../support/files.ts";
import { setupWithFiles } from "./cli.ts";

/** More than one piece of an upload, and more than a delegation takes. */
const LARGE = Buffer.alloc(3_300_000, "0123456789abcdef ");
const SMALL = Buffer.from("small\n");

test("a large file is uploaded, once for all calls with its key; a small one stays in the message", async () => {
  const { api, run, dir, url } = await setupWithFiles();
  await api.agent("scout");
  const [large, small] = [join(dir, "large.log"), join(dir, "small")];
  writeFileSync(large, LARGE);
  writeFileSync(small, SMALL);
  const args = ["delegate", "scout", "look", "--attach", large, "--attach", small, "--idempotency-key", "k"];
  const first = await run(args);
  expect([first.code, first.stderr]).toEqual([0, expect.not.stringContaining("uploaded")]);
  expect((await run(args)).stdout).toBe(first.stdout);
  const [text, named, inline] = (await api.get(first.stdout.trim())).body.message.parts;
  expect(text).toEqual({ text: "look" });
  expect(named).toEqual({
    url: expect.stringContaining(sha256(LARGE)),
    filename: "large.log",
    mediaType: "text/plain; charset=utf-8",
    metadata: { size: LARGE.length },
  });
  expect(inline).toMatchObject({ filename: "small", raw: SMALL.toString("base64") });
  const { bytes } = await fileCalls(url).call("GET", named.url);
  expect(LARGE.equals(bytes)).toBe(true);
  writeFileSync(large, LARGE.subarray(1));
  const changed = await run(args);
  expect([changed.code, changed.stderr]).toEqual([64, expect.stringContaining("was used with another body")]);
});

test("follow-ups and answers have files, too", async () => {
  const { api, run, dir, url } = await setupWithFiles();
  await api.agent("scout");
  const large = join(dir, "large.log");
  writeFileSync(large, LARGE);
  const { id } = (await api.delegate("scout")).body;
  expect((await run(["message", id, "with this", "--attach", large])).code).toBe(0);
  const [{ lease_id, delegation }] = (await api.lease("scout")).body.leases;
  expect(delegation.id).toBe(id);
  await api.interrupt(lease_id, { text: "Which log?" });
  expect((await run(["answer", id, "--attach", large])).code).toBe(0);
  const [again] = (await api.lease("scout")).body.leases;
  const parts = again.delegation.history.flatMap(({ parts }: { parts: { url?: string }[] }) => parts);
  const urls = parts.flatMap(({ url }: { url?: string }) => url ?? []);
  expect(urls).toHaveLength(2);
  for (const one of urls) expect(LARGE.equals((await fileCalls(url).call("GET", one)).bytes)).toBe(true);
});

test("nothing is uploaded for an agent that does not exist", async () => {
  const { api, run, dir, url } = await setupWithFiles();
  await api.agent("scout");
  const large = join(dir, "large.log");
  writeFileSync(large, LARGE);
  const refused = await run(["delegate", "scuot", "look", "--attach", large]);
  expect([refused.code, refused.stderr]).toEqual([66, expect.stringContaining("Did you mean scout?")]);
  expect((await fileCalls(url).call("GET", "/v1/files")).body.files).toEqual([]);
});

test("a folder stands for its files, without links, .git and node_modules", async () => {
  const { api, run, dir } = await setupWithFiles();
  await api.agent("scout");
  const folder = join(dir, "src");
  for (const one of ["deep/er", ".git", "deep/node_modules/x"])
    mkdirSync(join(folder, one), { recursive: true });
  for (const one of ["b.txt", ".env", "deep/er/a.txt", ".git/config", "deep/node_modules/x/y"])
    writeFileSync(join(folder, one), one);
  writeFileSync(join(dir, "outside"), "secret");
  symlinkSync(join(dir, "outside"), join(folder, "link"));
  symlinkSync(dir, join(folder, "up"));
  const { code, stdout, stderr } = await run(["delegate", "scout", "x", "--attach", `${folder}/deep/..`]);
  expect(code).toBe(0);
  expect(stderr).toContain("/deep/..: .git, node_modules, 2 that are no regular file.\n");
  const [, ...parts] = (await api.get(stdout.trim())).body.message.parts;
  expect(parts.map(({ filename }: { filename: string }) => filename)).toEqual([
    "src/.env",
    "src/b.txt",
    "src/deep/er/a.txt",
  ]);
  for (let at = 0; at <= 1000; at += 1) writeFileSync(join(folder, "deep", String(at)), "");
  const many = await run(["delegate", "scout", "x", "--attach", folder]);
  expect([many.code, many.stderr]).toEqual([64, expect.stringContaining("names more than 1000 files")]);
});

test("what the broker does not take is refused by name, before it is read where that is known", async () => {
  const { api, run, dir } = await setupWithFiles({ maxBytes: 1_000_000, principalBytes: 4_000_000 });
  await api.agent("scout");
  const [over, huge] = [join(dir, "over"), join(dir, "huge")];
  for (const [path, bytes] of [
    [over, 2_000_000],
    [huge, 1e12],
  ] as const) {
    writeFileSync(path, "");
    truncateSync(path, bytes);
  }
  const refused = await run(["delegate", "scout", "x", "--attach", over]);
  expect(refused.code).toBe(64);
  expect(refused.stderr).toContain(`over (1.9 MiB) cannot be attached: `);
  const before = performance.now();
  const early = await run(["delegate", "scout", "x", "--attach", huge]);
  expect([early.code, early.stderr]).toEqual([
    64,
    expect.stringContaining("huge (931.3 GiB) exceeds the 3.8 MiB of files"),
  ]);
  expect(performance.now() - before).toBeLessThan(20_000);
  expect((await api.call("GET", "/v1/delegations")).body.delegations).toEqual([]);
});

test.each([
  ["its content", (path: string) => writeFileSync(path, Buffer.alloc(LARGE.length, "z"))],
  ["its size", (path: string) => truncateSync(path, 10)],
])("a file that changes %s while it is sent is refused", async (_what, change) => {
  const { url, dir } = await setupWithFiles();
  const path = join(dir, "changing");
  writeFileSync(path, LARGE);
  const real = new Delegator({ url, token: OPERATOR });
  const upload: Delegator["upload"] = (...args) => {
    change(path);
    return real.upload(...args);
  };
  const file = { name: "changing", path, size: LARGE.length, followsLink: true };
  await expect(uploadFile({ upload }, file)).rejects.toThrow(FileChangedError);
  expect((await fileCalls(url).call("GET", "/v1/files")).body).toMatchObject({ files: [], bytes: 0 });
});
