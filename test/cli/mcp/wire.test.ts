import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { lines } from "../../../src/cli/mcp/wire.ts";

const MESSAGE = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
const BOM = Buffer.from("\uFEFF");

async function linesOf(chunks: readonly Buffer[]): Promise<string[]> {
  const found: string[] = [];
  for await (const line of lines(Readable.from(chunks))) found.push(line);
  return found;
}

test("a byte order mark before any message is dropped, however it arrives", async () => {
  const bytes = Buffer.from(`${MESSAGE}\n`);
  const arrivals: readonly (readonly Buffer[])[] = [
    [Buffer.concat([BOM, bytes])],
    [BOM, bytes],
    [BOM.subarray(0, 1), BOM.subarray(1, 2), Buffer.concat([BOM.subarray(2), bytes])],
    [BOM, BOM, bytes],
    [bytes],
  ];
  for (const first of arrivals) {
    expect(await linesOf(first)).toEqual([MESSAGE]);
    // The second message, in a chunk of its own or in the same one, and one that no line end follows.
    for (const second of arrivals) {
      expect(await linesOf([...first, ...second])).toEqual([MESSAGE, MESSAGE]);
      expect(await linesOf([Buffer.concat([...first, ...second])])).toEqual([MESSAGE, MESSAGE]);
    }
    expect(await linesOf([...first, BOM, Buffer.from(MESSAGE)])).toEqual([MESSAGE, MESSAGE]);
  }
});

test("a byte order mark within a message is a character of it", async () => {
  const text = '{"jsonrpc":"2.0","method":"x","params":{"text":"\uFEFFa\uFEFF"}}';
  expect(await linesOf([Buffer.from(`${text}\n`)])).toEqual([text]);
});
