/** Files and data of messages and artifacts: cut, put together, checked. */
import { expect, expectTypeOf, onTestFinished, test } from "vitest";
import { z } from "zod";
import { sendFile } from "../../src/client/files.ts";
import {
  type Artifact,
  bytesOf,
  type ChunkOptions,
  dataOf,
  ErrandApiError,
  type FileContent,
  filePart,
  InvalidDataError,
  type TypedSchema,
} from "../../src/index.ts";

const PIECE = 393_216;
const BYTES = Uint8Array.from({ length: 2 * PIECE + 7 }, (_, n) => (n * 31) % 256);

const FILES_OFF = new ErrandApiError({
  ...{ type: "", title: "", status: 501, detail: "", code: "files_off", category: "CONFIG" },
  ...{ retryable: false, recovery: "", request_id: "", broker_id: "" },
});

/** What arrives of a file at a broker without files: its chunks, and the artifact that the broker makes of them. */
async function sent(content: FileContent, options = {}) {
  const chunks: (ChunkOptions & Artifact)[] = [];
  await sendFile(
    {
      send: async (artifact, chunk) => void chunks.push({ ...artifact, ...chunk }),
      upload: () => Promise.reject(FILES_OFF),
    },
    "a.bin",
    content,
    options,
  );
  return { chunks, parts: chunks.flatMap(({ parts }) => parts) };
}

async function* inChunks(of: number) {
  for (let at = 0; at < BYTES.length; at += of) yield BYTES.subarray(at, at + of);
}

test.each<[string, FileContent, number[]]>([
  ["bytes", BYTES, [PIECE, PIECE, 7]],
  ["a Blob", new Blob([BYTES]), [PIECE, PIECE, 7]],
  ["a stream in small chunks", inChunks(65_536), [PIECE, PIECE, 7]],
  ["a stream in one chunk", inChunks(BYTES.length), [PIECE, PIECE, 7]],
  ["exactly one piece", BYTES.subarray(0, PIECE), [PIECE]],
  ["nothing", new Uint8Array(), [0]],
  ["a text", "grün", [5]],
])("a file is cut into pieces and is the same again: %s", async (_, content, sizes) => {
  const { chunks, parts } = await sent(content);
  expect(parts.map((part) => bytesOf({ parts: [part] }).length)).toEqual(sizes);
  const whole =
    typeof content === "string"
      ? new TextEncoder().encode(content)
      : BYTES.subarray(
          0,
          sizes.reduce((a, b) => a + b),
        );
  expect(Buffer.compare(bytesOf({ parts }), whole)).toBe(0);
  // The base64 of the whole, too: each piece but the last ends without padding.
  expect(parts.map(({ raw }) => raw).join("")).toBe(Buffer.from(whole).toString("base64"));
  expect(chunks.map(({ append }) => append)).toEqual(sizes.map((_size, n) => n > 0));
  expect(chunks.map(({ lastChunk }) => lastChunk)).toEqual(sizes.map((_size, n) => n === sizes.length - 1));
});

test("a file has a name, a type and an artifact", async () => {
  const [text, blob, bytes, named] = await Promise.all([
    sent("x"),
    sent(new Blob(["x"], { type: "text/csv" })),
    sent(BYTES),
    sent("x", { mediaType: "text/html", artifactId: "page", description: "The page" }),
  ]);
  const typeIn = ({ parts }: typeof text) => parts[0]?.mediaType;
  expect([text, blob, bytes, named].map(typeIn)).toEqual([
    "text/plain",
    "text/csv",
    "application/octet-stream",
    "text/html",
  ]);
  expect(text.chunks[0]).toMatchObject({
    artifactId: "a.bin",
    name: "a.bin",
    parts: [{ filename: "a.bin" }],
  });
  expect(named.chunks[0]).toMatchObject({ artifactId: "page", name: "a.bin", description: "The page" });
  expect(filePart("a.txt", "grün")).toEqual({ raw: "Z3LDvG4=", mediaType: "text/plain", filename: "a.txt" });
});

test("the bytes are those of files and texts; links and data have none", () => {
  const parts = [{ text: "a" }, { raw: "Yg==" }, { url: "https://x" }, { data: 1 }, { raw: "_-8" }];
  expect([...bytesOf({ parts })]).toEqual([97, 98, 255, 239]);
  expect(bytesOf(null).length).toBe(0);
  expect(() => bytesOf({ parts: [{ raw: "?" }] })).toThrow();
});

test("the data are the last data part, as a schema returns them, or an error says where they do not fit", async () => {
  const reply = { parts: [{ data: 1 }, { text: "x" }, { data: { port: "80" } }] };
  expect(dataOf(reply)).toEqual({ port: "80" });
  expect(dataOf(null)).toBeUndefined();
  const schema = z.object({ port: z.coerce.number() });
  const data = await dataOf(reply, schema);
  expectTypeOf(data).toEqualTypeOf<{ port: number }>();
  expect(data).toEqual({ port: 80 });
  const refused = dataOf(reply, z.object({ port: z.number("a number is needed") }));
  await expect(refused).rejects.toThrow("the data do not fit: port: a number is needed");
  await expect(refused).rejects.toBeInstanceOf(InvalidDataError);
  await expect(refused).rejects.toMatchObject({ issues: [{ path: "port", reason: "a number is needed" }] });
  const silent = dataOf(reply, z.object({ port: z.number(), host: z.string() }));
  await expect(silent).rejects.toThrow("port: must be a number, not a string; host: missing");
  // A program may have given zod its own words.
  const { customError } = z.config();
  z.config({ customError: () => "falsch" });
  onTestFinished(() => void z.config({ customError }));
  await expect(dataOf(reply, z.object({ port: z.number() }))).rejects.toThrow("port: falsch");
  // Of another library: a step of the path is an object, and the check takes a while.
  const other: TypedSchema<string> = {
    "~standard": { validate: async () => ({ issues: [{ message: "no", path: [{ key: "a" }, 0] }] }) },
  };
  await expect(dataOf(reply, other)).rejects.toMatchObject({ issues: [{ path: "a.0", reason: "no" }] });
});
