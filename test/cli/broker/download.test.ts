/** `errand get --artifact` and `--artifacts` with files that the broker stores: whole and checked, or not at all. */
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { fileCalls } from "../../support/files.ts";
import { run as runHere } from "../fake-host.ts";
import { setupWithFiles } from "./cli.ts";

const LARGE = Buffer.alloc(1_500_000, "0123456789abcdef ");

/** A delegation whose artifact has bytes of its own, then a file. */
async function withStored() {
  const setting = await setupWithFiles();
  const { api, url, dir } = setting;
  await api.agent("scout");
  const { id } = (await api.delegate("scout")).body;
  const [{ lease_id }] = (await api.lease("scout")).body.leases;
  const file = (await fileCalls(url).upload(LARGE)).body;
  const parts = [{ raw: Buffer.from("head\n").toString("base64") }, { url: file.url }];
  const reply = { artifacts: [{ artifactId: "a", name: "../log", parts }] };
  expect((await api.reply(lease_id, reply)).status).toBe(200);
  return {
    ...setting,
    id: String(id),
    whole: Buffer.concat([Buffer.from("head\n"), LARGE]),
    out: join(dir, "out"),
  };
}

test("a stored file goes to a file, to a folder under a safe name, and to stdout", async () => {
  const { run, id, whole, out, dir } = await withStored();
  expect((await run(["get", id])).stdout).toContain("../log (1.4 MiB)");
  const one = await run(["get", id, "--artifact", "a", "-o", out]);
  expect(one).toEqual({ code: 0, stdout: `${out} (1.4 MiB)\n`, stderr: "" });
  expect(whole.equals(readFileSync(out))).toBe(true);
  const again = await run(["get", id, "--artifact", "a", "-o", out]);
  expect([again.code, again.stderr]).toEqual([64, expect.stringContaining("with --force")]);
  const folder = join(dir, "folder");
  const { stdout } = await run(["get", id, "--artifacts", folder, "--json"]);
  const path = join(folder, "_log");
  expect(JSON.parse(stdout)).toEqual({
    artifact_id: "a",
    name: "../log",
    path,
    bytes: whole.length,
    urls: [],
  });
  expect([readdirSync(folder), whole.equals(readFileSync(path))]).toEqual([["_log"], true]);
  expect((await run(["get", id, "--artifact", "a"])).stdout).toBe(whole.toString());
});

/** Cuts the answer to the first request for a file in two, and passes everything else on. */
async function cuttingProxy(target: string): Promise<string> {
  let cuts = 0;
  const server = createServer(async (request, response) => {
    const { authorization = "", range } = request.headers;
    const headers = { authorization, ...(range !== undefined && { range }) };
    const answer = await fetch(target + request.url, { headers });
    const bytes = Buffer.from(await answer.arrayBuffer());
    response.writeHead(answer.status, {
      ...Object.fromEntries(answer.headers),
      "content-length": bytes.length,
    });
    const isFirst = request.url?.includes("/files/") && cuts++ === 0;
    if (isFirst) response.write(bytes.subarray(0, 700_000), () => response.destroy());
    else response.end(bytes);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  onTestFinished(() => void server.close());
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return `http://127.0.0.1:${address.port}`;
}

test("a broken download continues where it broke", async () => {
  const { id, url, whole, out } = await withStored();
  const env = { url: await cuttingProxy(url), token: "operator-token-for-tests" };
  const { code } = await runHere(["get", id, "--artifact", "a", "-o", out], { env });
  expect([code, whole.equals(readFileSync(out))]).toEqual([0, true]);
});

test("other content than that of the id leaves nothing behind, and replaces nothing", async () => {
  const { run, id, out, dir, store } = await withStored();
  writeFileSync(out, "mine");
  const [stored = ""] = readdirSync(store, { recursive: true, encoding: "utf8" })
    .map((name) => join(store, name))
    .filter((path) => statSync(path).isFile());
  chmodSync(stored, 0o600);
  writeFileSync(stored, Buffer.alloc(LARGE.length));
  const { code, stderr } = await run(["get", id, "--artifact", "a", "-o", out, "--force"]);
  expect([code, stderr]).toEqual([1, expect.stringContaining("is not its content")]);
  expect([readdirSync(dir), readFileSync(out, "utf8")]).toEqual([["out"], "mine"]);
});
