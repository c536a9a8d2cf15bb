/** `errand work` at a broker that stores files: those of the task, and those that its command returns. */
import { expect, test } from "vitest";
import { fileCalls } from "../../support/files.ts";
import { setupWithFiles } from "./cli.ts";

/** More than a delegation takes. */
const LARGE = Buffer.alloc(3_300_000, "0123456789abcdef ");

async function workerOf(script: string, sizes = {}) {
  const setting = await setupWithFiles(sizes);
  await setting.api.agent("scout");
  const end = async (message: object) => {
    const { id } = (await setting.api.delegate("scout", { message })).body;
    await setting.run(["work", "--agent", "scout", "--once", "--", "sh", "-c", script]);
    return (await setting.api.get(id)).body;
  };
  return { ...setting, calls: fileCalls(setting.url), end };
}

test("a command reads the files of its task in their folders, and returns files of any size", async () => {
  const { end, calls } = await workerOf(`
    cd "$ERRAND_FILES_DIR"; find . -type f | sort
    cat src/in.bin > "$ERRAND_ARTIFACTS_DIR/out.bin"; cp src/deep/small "$ERRAND_ARTIFACTS_DIR"`);
  const { url } = (await calls.upload(LARGE)).body;
  const { state, reply, artifacts } = await end({
    parts: [
      { text: "go" },
      { url, filename: "src/in.bin" },
      { raw: Buffer.from("small\n").toString("base64"), filename: "src/deep/small" },
      { url: "https://example.org/elsewhere", filename: "elsewhere" },
    ],
  });
  expect([state, reply.parts[0].text]).toEqual(["completed", "./src/deep/small\n./src/in.bin"]);
  const [out, small] = artifacts;
  expect(out).toMatchObject({
    artifactId: "file/out.bin",
    name: "out.bin",
    parts: [{ filename: "out.bin", mediaType: "application/octet-stream", metadata: { size: LARGE.length } }],
  });
  expect(small.parts[0].raw).toBe(Buffer.from("small\n").toString("base64"));
  const { bytes } = await calls.call("GET", out.parts[0].url);
  expect(LARGE.equals(bytes)).toBe(true);
});

test("a file beyond the operator's limit fails the delegation by its name, and none is sent", async () => {
  const script = `cd "$ERRAND_ARTIFACTS_DIR"; echo a > a; head -c 2000000 /dev/zero > film.bin`;
  const { end } = await workerOf(script, { maxBytes: 1_000_000 });
  const { error, artifacts } = await end({ parts: [{ text: "go" }] });
  expect(error).toMatchObject({ code: "output_too_large", retryable: false });
  expect(error.message).toContain("The broker does not take the file film.bin (1.9 MiB): ");
  expect(artifacts).toEqual([]);
});
