import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { client, OPERATOR, startBroker } from "../../support/broker.ts";

const TASK = '{"target":"scout","task":"x"}';

interface Request {
  readonly path: string;
  readonly encoding: string;
  readonly body: Buffer;
  readonly headers?: Record<string, string>;
}

test("every API refuses an encoded body with 415, in its own form, and says that only identity is accepted", async () => {
  const { url } = await startBroker();
  const api = client(url);
  await api.agent("scout");
  const post = async ({ path, encoding, body, headers = {} }: Request) => {
    const outgoing = httpRequest(`${url}${path}`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${OPERATOR}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "content-encoding": encoding,
        "content-length": String(body.length),
        ...headers,
      },
    });
    outgoing.end(body);
    const [incoming] = await once(outgoing, "response");
    let text = "";
    for await (const chunk of incoming) text += chunk;
    return {
      status: incoming.statusCode,
      accepts: incoming.headers["accept-encoding"],
      type: incoming.headers["content-type"],
      body: JSON.parse(text),
    };
  };
  const rpc = '{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{}}';
  const forms: readonly [path: string, headers: Record<string, string>, body: object][] = [
    ["/v1/delegations", {}, { code: "unsupported_encoding" }],
    ["/ag-ui/scout", {}, { code: "unsupported_encoding" }],
    ["/a2a/scout/rpc", { "a2a-version": "1.0" }, { jsonrpc: "2.0", id: null, error: { code: -32005 } }],
    ["/a2a/scout/rest/message:send", { "a2a-version": "1.0" }, { error: { code: 415 } }],
    ["/mcp", {}, { jsonrpc: "2.0", id: null, error: { data: { code: "unsupported_encoding" } } }],
  ];
  for (const [path, headers, form] of forms) {
    const refused = await post({ path, headers, encoding: "gzip", body: gzipSync(rpc) });
    expect(refused, path).toMatchObject({ status: 415, accepts: "identity", body: form });
    expect(JSON.stringify(refused.body), path).toContain("unsupported_encoding");
  }
  const encodings: readonly [string, Buffer][] = [
    ["GZIP", gzipSync(TASK)],
    ["x-gzip", gzipSync(TASK)],
    ["deflate", deflateSync(TASK)],
    ["br", brotliCompressSync(TASK)],
    ["identity, gzip", gzipSync(TASK)],
    ["zstd", Buffer.from(TASK)],
  ];
  for (const [encoding, body] of encodings)
    expect(await post({ path: "/v1/delegations", encoding, body }), encoding).toMatchObject({ status: 415 });
  const media = await post({
    path: "/v1/delegations",
    encoding: "identity",
    body: Buffer.from(TASK),
    headers: { "content-type": "text/plain" },
  });
  expect(media).toMatchObject({ status: 415, accepts: undefined, body: { code: "unsupported_media_type" } });
  for (const encoding of ["identity", "Identity", "identity, identity", ""])
    expect(
      await post({ path: "/v1/delegations", encoding, body: Buffer.from(TASK) }),
      encoding,
    ).toMatchObject({
      status: 202,
    });
  const { delegations } = (await api.call("GET", "/v1/delegations")).body;
  const cancel = `/v1/delegations/${delegations[0].id}/cancel`;
  // Without a body there is nothing to decode.
  expect(await post({ path: cancel, encoding: "gzip", body: Buffer.alloc(0) })).toMatchObject({
    status: 200,
  });
  expect((await api.call("GET", "/v1/delegations")).body.delegations).toHaveLength(4);
});
