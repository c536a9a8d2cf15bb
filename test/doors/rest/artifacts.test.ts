/** Artifacts that a worker sends before its reply: chunks, and the size limit. */
import { describe, expect, test } from "vitest";
import { as, client, startBroker } from "../../support/broker.ts";

/** A broker with the agent scout, the operator and a caller. */
async function setup(options = {}) {
  const broker = await startBroker(options);
  const admin = client(broker.url);
  await admin.agent("scout");
  return { admin, alice: await as(broker.url, "caller:alice") };
}

describe("artifacts", () => {
  test("arrive in chunks: streamed as chunks, complete in the delegation", async () => {
    const { admin, alice } = await setup();
    const { id } = (await alice.delegate("scout")).body;
    const lease = (await admin.lease("scout")).body.leases[0].lease_id;
    const send = (artifactId: string, text: string, more = {}) =>
      admin.call("POST", `/v1/leases/${lease}/artifacts`, {
        artifact: { artifactId, name: artifactId, parts: [{ text }] },
        ...more,
      });
    await send("report", "a");
    await send("log", "x");
    await send("report", "b", { append: true });
    await send("log", "y");
    expect((await send("report", "c", { append: true, last_chunk: true })).status).toBe(200);
    await admin.reply(lease, {
      artifacts: [{ artifactId: "final", parts: [{ data: { n: 1, empty: [] } }] }],
    });
    const { artifacts } = (await alice.get(id)).body;
    expect(artifacts).toEqual([
      { artifactId: "report", name: "report", parts: [{ text: "a" }, { text: "b" }, { text: "c" }] },
      { artifactId: "log", name: "log", parts: [{ text: "y" }] },
      { artifactId: "final", parts: [{ data: { n: 1, empty: [] } }] },
    ]);
    const { events } = (await alice.events(id)).body;
    const streamed = events.filter((event: { status?: string }) => event.status === "artifact");
    expect(streamed).toHaveLength(5);
    expect(streamed[4]).toMatchObject({
      append: true,
      last_chunk: true,
      artifact: { parts: [{ text: "c" }] },
    });
  });

  test("count against the limit of a delegation: 413, and the lease stays", async () => {
    const { admin, alice } = await setup({ maxBodyBytes: 4_194_304 });
    const { id } = (await alice.delegate("scout")).body;
    const lease = (await admin.lease("scout")).body.leases[0].lease_id;
    const send = (artifactId: string, size: number) =>
      admin.call("POST", `/v1/leases/${lease}/artifacts`, {
        artifact: { artifactId, parts: [{ text: "x".repeat(size) }] },
      });
    expect((await send("a", 2_000_000)).status).toBe(200);
    expect(await send("b", 2_000_000)).toMatchObject({ status: 413, body: { code: "payload_too_large" } });
    expect((await admin.reply(lease, { text: "x".repeat(2_000_000) })).status).toBe(413);
    expect((await admin.reply(lease, { text: "small" })).status).toBe(200);
    expect((await alice.get(id)).body.artifacts).toHaveLength(1);
    expect((await alice.delegate("scout", { task: "x".repeat(3_200_000) })).status).toBe(413);
  });
});
