/** `errand get --artifact` and `--artifacts`: byte for byte, under safe names, never over an existing file. */
import { existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { run as runHere } from "../fake-host.ts";
import { lines, setup } from "./cli.ts";

const BYTES = Buffer.from([0, 255, 10, 13, 128]);
const raw = (bytes: Buffer) => ({ raw: bytes.toString("base64") });

async function withArtifacts() {
  const setting = await setup();
  const { api, run } = setting;
  await api.agent("scout");
  const { id } = (await api.delegate("scout")).body;
  const [{ lease_id }] = (await api.lease("scout")).body.leases;
  const artifacts = [
    { artifactId: "a1", name: "../../report.bin", parts: [raw(BYTES), raw(BYTES)] },
    { artifactId: "a2", name: "log", parts: [{ text: "one\n" }, { text: "two" }] },
    { artifactId: "a3", name: "log", parts: [{ data: { n: 1 } }] },
    { artifactId: "../a4", parts: [{ url: "https://example.org/\u001b[2Jx" }] },
    {
      artifactId: "a5",
      parts: [
        { ...raw(BYTES), filename: "x.png" },
        { text: "y", filename: "y.txt" },
      ],
    },
  ];
  expect((await api.reply(lease_id, { artifacts })).status).toBe(200);
  const get = (...more: string[]) => run(["get", String(id), ...more]);
  return { ...setting, id: String(id), get };
}

describe("one artifact", () => {
  test("goes to stdout or to a file, which is not replaced without --force", async () => {
    const { get, dir } = await withArtifacts();
    const path = join(dir, "out");
    expect(await get("--artifact", "a2")).toEqual({ code: 0, stdout: "one\ntwo", stderr: "" });
    expect((await get("--artifact", "a2", "-o", "-")).stdout).toBe("one\ntwo");
    const written = await get("--artifact", "../../report.bin", "-o", path);
    expect(written).toEqual({ code: 0, stdout: `${path} (10 bytes)\n`, stderr: "" });
    expect(readFileSync(path)).toEqual(Buffer.concat([BYTES, BYTES]));
    const refused = await get("--artifact", "a3", "-o", path);
    expect([refused.code, refused.stderr]).toEqual([64, expect.stringContaining("with --force")]);
    expect(readFileSync(path)).toHaveLength(10);
    expect((await get("--artifact", "a3", "-o", path, "--force")).code).toBe(0);
    expect(readFileSync(path, "utf8")).toBe('{"n":1}\n');
    expect(readdirSync(dir)).toEqual(["out"]);
    const json = await get("--artifact", "a3", "-o", path, "--force", "--json");
    expect(JSON.parse(json.stdout)).toEqual({ artifact_id: "a3", name: "log", path, bytes: 8, urls: [] });
  });

  test("is asked for by its id if several have its name; an unknown one lists the names", async () => {
    const { get } = await withArtifacts();
    const several = await get("--artifact", "log");
    expect([several.code, several.stdout]).toEqual([64, ""]);
    expect(several.stderr).toContain("has 2 artifacts named 'log'. Pass the id of one: a2, a3.");
    const none = await get("--artifact", "lgo");
    expect([none.code, none.stderr]).toEqual([
      66,
      expect.stringContaining("It has: ../../report.bin, log, log,"),
    ]);
  });
});

describe("all artifacts", () => {
  const NAMES = ["_.._report.bin", "_a4", "log", "log-2", "x.png", "y.txt"];

  test("are files with safe names in the folder", async () => {
    const { get, dir } = await withArtifacts();
    const folder = join(dir, "new", "out");
    const { code, stdout, stderr } = await get("--artifacts", folder);
    expect([code, readdirSync(folder).sort()]).toEqual([0, NAMES]);
    expect(readdirSync(dir)).toEqual(["new"]);
    expect(stdout.split("\n")[1]).toBe(`${join(folder, "log")} (7 bytes)`);
    expect(stderr).toBe("errand: a part of it is elsewhere: https://example.org/x\n");
    expect(readFileSync(join(folder, "x.png"))).toEqual(BYTES);
    const line = z.strictObject({
      artifact_id: z.string(),
      name: z.string().optional(),
      path: z.string(),
      bytes: z.int(),
      urls: z.array(z.string()),
    });
    const json = await get("--artifacts", folder, "--force", "--json");
    expect(lines(line, json.stdout).map(({ artifact_id }) => artifact_id)).toEqual([
      "a1",
      "a2",
      "a3",
      "../a4",
      "a5",
      "a5",
    ]);
  });

  test("replace nothing and follow no link; with --force they replace the link itself", async () => {
    const { get, dir } = await withArtifacts();
    const precious = join(dir, "precious");
    writeFileSync(precious, "mine");
    symlinkSync(precious, join(dir, "log-2"));
    symlinkSync(join(dir, "absent"), join(dir, "x.png"));
    const refused = await get("--artifacts", dir);
    expect([refused.code, refused.stdout]).toEqual([64, ""]);
    expect(refused.stderr).toContain(`${join(dir, "log-2")} exists.`);
    expect(existsSync(join(dir, "log"))).toBe(false);
    expect((await get("--artifacts", dir, "--force")).code).toBe(0);
    expect([readFileSync(precious, "utf8"), existsSync(join(dir, "absent"))]).toEqual(["mine", false]);
    expect(readFileSync(join(dir, "log-2"), "utf8")).toBe('{"n":1}\n');
  });
});

const TEXT = "one\n  two\u001b[2J \u001b]0;x\u0007\u009b31mred\n\nend\u202e\n";

test.each([
  ["a text", { text: TEXT }],
  ["a file that is text", raw(Buffer.from(TEXT))],
])("on a terminal %s controls nothing; elsewhere it is as it was", async (_name, part) => {
  const { api, url, run } = await setup();
  await api.agent("scout");
  const { id } = (await api.delegate("scout")).body;
  const [{ lease_id }] = (await api.lease("scout")).body.leases;
  await api.reply(lease_id, { artifacts: [{ artifactId: "a", parts: [part] }] });
  const env = { url, token: "operator-token-for-tests" };
  const show = async (...more: string[]) =>
    (await runHere(["get", id, "--artifact", "a", ...more], { env, tty: { stdout: true } })).stdout;
  expect(await show()).toBe("one\n  two 31mred\n\nend\n");
  expect(await show("-o", "-")).toBe(TEXT);
  expect((await run(["get", id, "--artifact", "a"])).stdout).toBe(TEXT);
});

test("bytes are not printed on a terminal", async () => {
  const { id, url } = await withArtifacts();
  const env = { url, token: "operator-token-for-tests" };
  const shown = await runHere(["get", id, "--artifact", "a1"], { env, tty: { stdout: true } });
  expect([shown.code, shown.stdout]).toEqual([64, ""]);
  expect(shown.stderr).toContain("Pass --output <path>.");
});

test.each([
  [["--artifact", "a", "--artifacts", "d"], "either --artifact or --artifacts"],
  [["-o", "f"], "--output requires --artifact"],
  [["--force"], "--force requires"],
  [["--artifact", "a", "--json"], "--artifact with --json requires"],
  [["--artifact", "a", "--reply"], "give only one of"],
])("%j is a usage error", async (more, said) => {
  const { code, stderr } = await runHere(["get", "dlg_1", ...more]);
  expect([code, stderr]).toEqual([64, expect.stringContaining(said)]);
});
