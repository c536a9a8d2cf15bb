/** ERRAND_ARTIFACTS_DIR: the files that a command of `errand work` returns. */
import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { setup } from "./cli.ts";

async function workerOf(script: string) {
  const setting = await setup();
  await setting.api.agent("scout");
  const workOnce = () => setting.run(["work", "--agent", "scout", "--once", "--", "sh", "-c", script]);
  const end = async (task: string) => {
    const { id } = (await setting.api.delegate("scout", { task })).body;
    await workOnce();
    return (await setting.api.get(id)).body;
  };
  return { ...setting, workOnce, end };
}

const bytesOf = (artifact: { parts: { raw: string }[] }) =>
  Buffer.concat(artifact.parts.map(({ raw }) => Buffer.from(raw, "base64")));

test("its files become artifacts, with a question too; each attempt has a new folder, removed in the end", async () => {
  const { api, run, workOnce } = await workerOf(`
    cd "$ERRAND_ARTIFACTS_DIR"
    [ -z "$(ls -A)" ] || exit 1
    [ "$ERRAND_DECISION" ] || { echo one > draft.txt; echo Go?; exit 79; }
    head -c 1500000 /dev/zero > plot.bin; mkdir -p sub/deep; echo '# Notes' > sub/deep/notes.md; : > stdout
    ln -s /etc/hostname link; ln -s /etc folder; mkfifo pipe
    printf %s "$PWD"`);
  const { id } = (await api.delegate("scout")).body;
  const working = workOnce();
  const { interrupt, artifacts: drafts } = (await api.get(id, "?wait_seconds=60")).body;
  expect(drafts.map((draft: { name: string }) => draft.name)).toEqual(["draft.txt"]);
  await api.answer(id, interrupt.id, { decision: "approve" });
  const { code, stderr } = await working;
  expect(code).toBe(0);
  expect(stderr).toMatch(new RegExp(` leased ${id} from operator, attempt 1\n`));
  expect(stderr).toMatch(new RegExp(` resumed ${id} from operator after approve by operator\n`));
  const { state, reply, artifacts } = (await api.get(id)).body;
  expect(state).toBe("completed");
  const [draft, plot, output, notes] = artifacts;
  expect(artifacts).toHaveLength(4);
  expect(draft).toMatchObject({ name: "draft.txt", parts: [{ mediaType: "text/plain; charset=utf-8" }] });
  expect([plot.name, bytesOf(plot).equals(Buffer.alloc(1_500_000))]).toEqual(["plot.bin", true]);
  expect([output.artifactId, bytesOf(output).length]).toEqual(["file/stdout", 0]);
  expect(notes).toMatchObject({ name: "sub/deep/notes.md", parts: [{ filename: "sub/deep/notes.md" }] });
  expect(bytesOf(notes).toString()).toBe("# Notes\n");
  expect(existsSync(reply.parts[0].text)).toBe(false);
  const shown = (await run(["get", id])).stdout;
  expect(shown).toContain(`plot.bin (1.4 MiB): 'errand get ${id} --artifact plot.bin -o plot.bin'\n`);
  expect(shown).toContain(`'errand get ${id} --artifact sub/deep/notes.md -o notes.md'\n`);
  expect((await run(["get", id, "--reply"])).stderr).toContain(
    "the artifacts draft.txt (4 bytes), plot.bin (1.4 MiB), ",
  );
});

test("files that do not fit fail the delegation by name; a failed command keeps its error and its files", async () => {
  const { end } = await workerOf(`
    cd "$ERRAND_ARTIFACTS_DIR"; read -r size status word
    head -c "$size" /dev/zero > film.bin; echo why >&2; exit "$status"`);
  const large = await end("2500000 0");
  expect(large.error).toMatchObject({ code: "output_too_large", retryable: false });
  expect(large.error.message).toContain("With the file film.bin (2.4 MiB), the output exceeds");
  expect(large.artifacts).toEqual([]);
  // Only the broker knows that the task leaves no room.
  const full = await end(`2200000 0 ${"x".repeat(900_000)}`);
  expect(full.error).toMatchObject({ code: "output_too_large" });
  expect(full.error.message).toContain("film.bin");
  const failed = await end("10 3");
  expect(failed.error).toMatchObject({ code: "command_failed", message: "why" });
  expect(failed.artifacts).toMatchObject([{ name: "film.bin" }]);
  const both = await end("2500000 3");
  expect(both.error.code).toBe("command_failed");
  expect(both.error.message).toMatch(/^why\nWith the file film\.bin/);
});
