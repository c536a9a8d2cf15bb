/** `errand delegate --attach`: files arrive as parts, byte for byte, and in a folder at commands of `errand work`. */
import { execFileSync } from "node:child_process";
import { mkdirSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { mediaTypeOf } from "../../../src/cli/files/media-type.ts";
import { setup } from "./cli.ts";

const BYTES = Buffer.from([0, 255, 10, 13, 128]);

test("each file is a part with its name, its media type and its bytes", async () => {
  const { api, run, dir } = await setup();
  await api.agent("scout");
  const files = { "a.png": BYTES, "notes.md": Buffer.from("# läne\n"), empty: Buffer.from("") };
  const attached = Object.entries(files).flatMap(([name, bytes]) => {
    writeFileSync(join(dir, name), bytes);
    return ["--attach", join(dir, name)];
  });
  const { code, stdout } = await run(["delegate", "scout", "look", "at", "these", ...attached]);
  expect(code).toBe(0);
  const [text, ...parts] = (await api.get(stdout.trim())).body.message.parts;
  expect(text).toEqual({ text: "look at these" });
  expect(parts).toEqual([
    { filename: "a.png", mediaType: "image/png", raw: BYTES.toString("base64") },
    {
      filename: "notes.md",
      mediaType: "text/plain; charset=utf-8",
      raw: Buffer.from("# läne\n").toString("base64"),
    },
    { filename: "empty", mediaType: "text/plain; charset=utf-8", raw: "" },
  ]);
});

test("a file that cannot be sent is refused before anything is sent", async () => {
  const { api, run, dir } = await setup();
  await api.agent("scout");
  const [missing, folder, huge, large] = ["missing", "folder", "huge", "large"].map((name) =>
    join(dir, name),
  );
  mkdirSync(folder ?? "");
  const pipe = join(dir, "pipe");
  execFileSync("mkfifo", [pipe]);
  for (const [path, bytes] of [
    [huge, 1e12],
    [large, 3 * 1024 * 1024],
  ] as const) {
    writeFileSync(path ?? "", "");
    truncateSync(path ?? "", bytes);
  }
  for (const [path, said] of [
    [missing, "cannot be attached (ENOENT"],
    [folder, "cannot be attached (no regular file is below it"],
    [pipe, "cannot be attached (not a regular file"],
    ["/dev/zero", "cannot be attached (not a regular file"],
    [huge, "huge (931.3 GiB), the task exceeds 3 MiB, the limit of a delegation"],
    [large, "the task exceeds 3 MiB"],
  ]) {
    const { code, stderr } = await run(["delegate", "scout", "x", "--attach", path ?? ""]);
    expect([code, stderr]).toEqual([64, expect.stringContaining(said ?? "")]);
  }
  expect((await api.call("GET", "/v1/delegations")).body.delegations).toEqual([]);
});

test("the broker's refusal names what was sent, and the limit", async () => {
  const { api, run, dir } = await setup();
  await api.agent("scout");
  writeFileSync(join(dir, "zeros"), Buffer.alloc(1024 * 1024));
  const { code, stderr } = await run(["delegate", "scout", "x", "--attach", join(dir, "zeros")]);
  expect(code).toBe(64);
  expect(stderr).toContain("The task, with its attachments, takes 1.3 MiB.");
  expect(stderr).toContain("ERRAND_MAX_BODY_BYTES (default 1 MiB)");
});

test("a command of errand work finds the files in ERRAND_FILES_DIR, under safe names", async () => {
  const { api, worker, run } = await setup();
  await worker("scout", "sh", "-c", 'cd "$ERRAND_FILES_DIR" && for f in *; do echo "$f"; cat "$f"; done');
  const parts = [
    { text: "go" },
    { raw: BYTES.toString("base64"), filename: "../../evil.bin" },
    { raw: Buffer.from("second").toString("base64") },
  ];
  const { id } = (await api.delegate("scout", { message: { parts } })).body;
  const done = await run(["get", id, "--wait", "--json"]);
  const { artifacts, reply } = JSON.parse(done.stdout);
  const output =
    Buffer.from(artifacts[0]?.parts[0].raw ?? "", "base64").toString("latin1") || reply.parts[0].text;
  expect(output).toBe(`_.._evil.bin\n${BYTES.toString("latin1")}file\nsecond`);
});

test.each([
  ["a.PDF", "", "application/pdf"],
  ["main.ts", "let a", "text/plain; charset=utf-8"],
  ["film.ts", "\u0000", "video/mp2t"],
  ["data", "\u0000", "application/octet-stream"],
])("the media type of %s", (name, text, type) => {
  expect(mediaTypeOf(name, Buffer.from(text))).toBe(type);
});
