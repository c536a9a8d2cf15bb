/** Which texts are base64, and that a hostile one is checked in linear time. */
import { expect, test } from "vitest";
import { isBase64 } from "../../../src/doors/a2a/base64.ts";
import { OPERATOR, request } from "../../support/broker.ts";
import { jsonMessage, leaseOf, startA2aBroker } from "./support.ts";

test.each([
  "",
  "QQ==",
  "QQ",
  "QUI=",
  "QUI",
  "QUJD",
  "QUJDRA",
  "-_-_",
  "+/+/",
  "QUJD\n",
  "QUJD\r\nRA==\n",
  " QQ = = ",
])("%j is base64", (text) => expect(isBase64(text)).toBe(true));

test.each([
  "Q",
  "QUJDR",
  "QQ=",
  "QUI==",
  "=",
  "==",
  "Q===",
  "QUJD=",
  "QUJD====",
  "QQ==QQ==",
  "%%",
  "QU.D",
  "QQ==\u0000",
  "QÜ==",
])("%j is not", (text) => expect(isBase64(text)).toBe(false));

test("a megabyte is checked in linear time, whatever its end", () => {
  const startedAt = process.cpuUsage();
  for (const end of ["", "!", "=", "\n", "\n!", " !"]) {
    for (const unit of ["AAAA", "A A\n", "=", " ", "\n", "-_"]) isBase64(unit.repeat(250_000) + end);
  }
  expect(process.cpuUsage(startedAt).user / 1e6).toBeLessThan(3);
});

test("60 groups with an invalid end are refused, and the gateway still answers", async () => {
  const { url, raw, caller } = await startA2aBroker();
  const hostile = `${"AAAA".repeat(60)}!`;
  const startedAt = process.cpuUsage();
  const { body } = await raw.rpc("SendMessage", { message: jsonMessage("", { parts: [{ raw: hostile }] }) });
  expect(body.error.data[1].fieldViolations[0].field).toBe("message.parts.0.raw");
  const old = await request(url, "POST", "/a2a/nobody/rpc", {
    token: caller.token,
    headers: { "a2a-version": "0.3" },
    body: {
      jsonrpc: "2.0",
      id: 1,
      method: "message/send",
      params: {
        message: {
          messageId: "m",
          role: "user",
          parts: [{ kind: "file", file: { bytes: hostile } }],
        },
      },
    },
  });
  expect(old.body.error.code).toBe(-32602);
  expect((await request(url, "GET", "/healthz", { token: OPERATOR })).status).toBe(200);
  expect(process.cpuUsage(startedAt).user / 1e6).toBeLessThan(2);
});

test("line breaks, the URL alphabet and missing padding are normalized to plain base64", async () => {
  const { raw, agent } = await startA2aBroker();
  const bytes = Buffer.from(Array.from({ length: 100 }, (_, at) => 255 - at));
  const lines = bytes.toString("base64").replaceAll(/.{76}/g, "$&\n");
  const sent = raw.rpc("SendMessage", {
    message: jsonMessage("", { parts: [{ raw: `${lines}\n` }, { raw: bytes.toString("base64url") }] }),
    configuration: { returnImmediately: true },
  });
  expect((await sent).body.error).toBeUndefined();
  const { body } = await leaseOf(agent);
  const plain = { raw: bytes.toString("base64") };
  expect(body.request.params.message.parts).toEqual([plain, plain]);
});
