import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { lines } from "../../../src/cli/mcp/wire.ts";

const MESSAGE = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
const BOM = Buffer.from("\uFEFF");

test("a byte order mark before the first message is dropped, however it arrives", async () => {
  const bytes = Buffer.from(`${MESSAGE}\n`);
  const arrivals: readonly (readonly Buffer[])[] = [
    [Buffer.concat([BOM, bytes])],
    [BOM, bytes],
    [BOM.subarray(0, 1), BOM.subarray(1, 2), Buffer.concat([BOM.subarray(2), bytes])],
    [bytes],
  ];
  for (const chunks of arrivals) {
    const found: string[] = [];
    for await (const line of lines(Readable.from(chunks))) found.push(line);
    expect(found).toEqual([MESSAGE]);
  }
  const later: string[] = [];
  for await (const line of lines(Readable.from([bytes, BOM, bytes]))) later.push(line);
  // Inside the input it is a character.
  expect(later).toEqual([MESSAGE, `\uFEFF${MESSAGE}`]);
});
