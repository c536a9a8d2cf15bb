/** Files of delegations over MCP: results link to them, and clients of both generations read them. */
import { expect, test } from "vitest";
import { as } from "../../support/broker.ts";
import { fileCalls, startFileBroker } from "../../support/files.ts";
import { type Era, mcpClient } from "../../support/mcp.ts";

const READ = "resources/read";

test.each<Era>(["modern", "legacy"])("a %s client follows a link to a file and reads it", async (era) => {
  const { url } = await startFileBroker();
  const [alice, bob, scout] = [
    await as(url, "caller:alice"),
    await as(url, "caller:bob"),
    await as(url, "agent:scout"),
  ];
  await scout.agent("scout");
  const { id } = (await alice.delegate("scout")).body;
  const [{ lease_id: lease }] = (await scout.lease("scout")).body.leases;
  const upload = async (content: string) => (await fileCalls(url, scout.token).upload(content)).body.url;
  const parts = [
    { url: await upload("the log"), filename: "log.txt", mediaType: "text/plain" },
    { url: await upload("\0\u0001"), filename: "a.bin" },
    { url: await upload("x".repeat(1_100_000)), filename: "big.txt" },
    { url: "https://elsewhere.example/b.txt" },
  ];
  await scout.reply(lease, { text: undefined, message: { parts } });
  const client = await mcpClient(url, alice.token, era);
  const args = { name: "check_task_status", arguments: { delegation_id: id, full: true } };
  const { content } = await client.callTool(args);
  const links = content.filter(({ type }) => type === "resource_link");
  expect(links).toEqual([
    { type: "resource_link", uri: expect.any(String), name: "log.txt", mimeType: "text/plain", size: 7 },
    { type: "resource_link", uri: expect.any(String), name: "a.bin", size: 2 },
    { type: "resource_link", uri: expect.any(String), name: "big.txt", size: 1_100_000 },
  ]);
  const [log = "", binary = "", big = ""] = links.map((link) => ("uri" in link ? link.uri : ""));
  expect((await client.readResource({ uri: log })).contents).toEqual([{ uri: log, text: "the log" }]);
  expect((await client.readResource({ uri: binary })).contents).toEqual([{ uri: binary, blob: "AAE=" }]);
  await expect(client.readResource({ uri: big })).rejects.toThrow(/1100000 bytes/);
  await expect(client.readResource({ uri: "file:///etc/passwd" })).rejects.toThrow(/no such resource/i);
  const { resourceTemplates } = await client.listResourceTemplates();
  expect(resourceTemplates[0]?.uriTemplate).toBe(`${url}/v1/delegations/{delegation_id}/files/{file_id}`);
  const other = await mcpClient(url, bob.token, era);
  await expect(other.request({ method: READ, params: { uri: log } })).rejects.toThrow(/delegation/);
});
