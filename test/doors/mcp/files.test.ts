/** Streamed text, files and questions with a schema, as MCP shows them. */
import { expect, test } from "vitest";
import { textOf } from "../../../src/schema/a2a.ts";
import { as, startBroker } from "../../support/broker.ts";
import { callModern } from "../../support/mcp.ts";

const PNG = "iVBORw0KGgo=";

async function setup() {
  const { url } = await startBroker();
  const scout = await as(url, "agent:scout");
  await scout.agent("scout");
  const alice = await as(url, "caller:alice");
  const callBy = (token: string) => async (name: string, args: Record<string, unknown>) => {
    const {
      content,
      structuredContent,
      isError = false,
    } = (await callModern(url, token, name, args)).body.result;
    return { content, data: structuredContent, isError, text: content[0].text };
  };
  const begin = async () => {
    const { delegation_id } = (
      await callBy(alice.token)("delegate_task_async", { agent: "scout", task: "x" })
    ).data;
    const [{ lease_id }] = (await scout.lease("scout")).body.leases;
    return { delegation_id, lease_id };
  };
  return { scout, alice, call: callBy(alice.token), work: callBy(scout.token), begin };
}

test("the chunks of an artifact are one text, the parts of a message are lines", async () => {
  const { scout, call, begin } = await setup();
  const { delegation_id, lease_id } = await begin();
  const chunks = ["The ", "answer", " is ", "4", "2", ".\n", "Bye"];
  for (const [at, text] of chunks.entries()) {
    const artifact = { artifactId: "a", parts: [{ text }] };
    const sent = await scout.call("POST", `/v1/leases/${lease_id}/artifacts`, { artifact, append: at > 0 });
    expect(sent.status, JSON.stringify(sent.body)).toBeLessThan(300);
  }
  const message = { parts: [{ text: "one" }, { text: "two" }] };
  const replied = await scout.call("POST", `/v1/leases/${lease_id}/reply`, { state: "completed", message });
  expect(replied.status).toBe(200);
  const { data, text } = await call("check_task_status", { delegation_id });
  expect(data.artifacts[0].text).toBe(chunks.join(""));
  expect(text).toContain("The answer is 42.\nBye");
  expect(data.reply.text).toBe("one\ntwo");
  expect(textOf({ artifactId: "a", parts: [{ text: "a" }, { data: 1 }, { text: "b" }] })).toBe("ab");
});

test("files are sent as base64, named with type and size, and shown with full: true", async () => {
  const { work, call, begin } = await setup();
  const { delegation_id, lease_id } = await begin();
  const artifacts = [
    { name: "a.png", base64: PNG, media_type: "image/png" },
    { name: "b.bin", base64: "_-8=" },
    { name: "big.bin", base64: Buffer.alloc(300_000).toString("base64"), media_type: "audio/wav" },
    { name: "c.txt", text: "plain" },
  ];
  for (const wrong of [
    { name: "x" },
    { name: "x", text: "a", base64: PNG },
    { name: "x", base64: "data:image/png;base64,AA" },
  ]) {
    expect((await work("complete_task", { lease_id, artifacts: [wrong] })).data.error.code).toBe(
      "invalid_request",
    );
  }
  expect((await work("complete_task", { lease_id, text: "done", artifacts })).isError).toBe(false);
  const short = await call("check_task_status", { delegation_id });
  const files = [
    [{ name: "a.png", media_type: "image/png", bytes: 8 }],
    [{ name: "b.bin", media_type: "application/octet-stream", bytes: 2 }],
    [{ name: "big.bin", media_type: "audio/wav", bytes: 300_000 }],
    undefined,
  ];
  type Shown = { files?: unknown; truncated?: boolean };
  expect(short.data.artifacts.map((one: Shown) => one.files)).toEqual(files);
  expect(short.content).toHaveLength(1);
  expect(short.text).toContain("[file a.png image/png, 8 bytes]");
  const full = await call("check_task_status", { delegation_id, full: true });
  expect(full.data.artifacts.map((one: Shown) => one.files)).toEqual(files);
  expect(full.data.artifacts.map((one: Shown) => one.truncated)).toEqual([
    undefined,
    undefined,
    true,
    undefined,
  ]);
  expect(full.content.slice(1)).toEqual([
    { type: "image", data: PNG, mimeType: "image/png" },
    {
      type: "resource",
      resource: { uri: "errand:///b.bin", mimeType: "application/octet-stream", blob: "/+8=" },
    },
  ]);
});

test("the schema of a question is in the text of the answer, and in the refusal", async () => {
  const { work, call, begin } = await setup();
  const { delegation_id, lease_id } = await begin();
  const schema = { type: "integer", maximum: 40 };
  await work("request_input", { lease_id, question: "How long?", schema });
  const { text, data } = await call("check_task_status", { delegation_id });
  expect(text).toContain(`How long? JSON Schema: ${JSON.stringify(schema)}`);
  const { interrupt_id } = data.question;
  const refused = await call("answer_task", { delegation_id, interrupt_id, data: 41 });
  expect([refused.isError, refused.text]).toEqual([true, expect.stringContaining(JSON.stringify(schema))]);
});
