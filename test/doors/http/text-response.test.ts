/** Responses on the wire. */
import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { Outflow } from "../../../src/doors/http/outflow.ts";
import { jsonText } from "../../../src/doors/http/text-response.ts";

const outflow = new Outflow({ now: () => 0, onCut: () => {} });

/** The bytes of the response to one request. */
async function onTheWire(text: string): Promise<Buffer> {
  const server = createServer((_, outgoing) =>
    jsonText(200, text).writeTo(outgoing, { connection: "close" }, outflow, () => "caller:alice"),
  );
  onTestFinished(() => void server.close());
  await once(server.listen(0, "127.0.0.1"), "listening");
  const address: AddressInfo | string | null = server.address();
  if (address === null || typeof address === "string") throw new TypeError("no port");
  const socket = connect(address.port, "127.0.0.1");
  socket.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const bytes: Buffer[] = [];
  for await (const some of socket) bytes.push(Buffer.from(some));
  return Buffer.concat(bytes);
}

test.each([
  ["plain ASCII", '{"text":"a~\u007f"}'],
  ["Latin-1 alone", '{"text":"\u0080é\u00ff"}'],
  ["longer characters", '{"text":"€ 你 😀"}'],
  ["half a pair", '"\ud83d"'],
  ["nothing", ""],
  ["much", JSON.stringify("é€".repeat(200_000))],
])("%s is sent as UTF-8, with its length in bytes", async (_, text) => {
  const bytes = await onTheWire(text);
  const end = bytes.indexOf("\r\n\r\n");
  const body = bytes.subarray(end + 4);
  expect(body.toString("hex")).toBe(Buffer.from(text, "utf8").toString("hex"));
  const head = bytes.subarray(0, end).toString("latin1").toLowerCase();
  expect(head).toContain(`content-length: ${body.length}`);
  expect(head).toContain("content-type: application/json");
});
