/** Files that messages and artifacts name: who may name them, who may read them, how long they last. */
import { expect, test } from "vitest";
import { as, client } from "../support/broker.ts";
import { fileCalls, startFileBroker } from "../support/files.ts";

const HOUR_MS = 3_600_000;

/** A broker with an agent, its token, and the tokens of two callers. */
async function world() {
  const broker = await startFileBroker();
  const { url } = broker;
  const operator = client(url);
  await operator.agent("scout");
  await operator.agent("other");
  const [ana, bob, scout, other] = await Promise.all(
    ["caller:ana", "caller:bob", "agent:scout", "agent:other"].map((one) => as(url, one)),
  );
  if (!ana || !bob || !scout || !other) throw new Error("no tokens");
  const upload = async (who: { token: string }, content: string) =>
    (await fileCalls(url, who.token).upload(content)).body as { id: string; url: string };
  const fetchAs = (who: { token: string }, path: string) => fileCalls(url, who.token).call("GET", path);
  const naming = (file: string) => ({
    message: { parts: [{ text: "Read it" }, { url: file, filename: "a.txt", mediaType: "text/plain" }] },
  });
  return { ...broker, operator, ana, bob, scout, other, upload, fetchAs, naming };
}

test("a delegation names its delegator's file; its agent and the viewers read it, others do not", async () => {
  const { url, ana, bob, scout, other, upload, fetchAs, naming } = await world();
  const file = await upload(ana, "the log");
  const made = await ana.delegate("scout", naming(file.url));
  expect(made.status).toBe(202);
  const [{ delegation }] = (await scout.lease("scout")).body.leases;
  const [, part] = delegation.message.parts;
  expect(part).toEqual({
    url: `${url}/v1/delegations/${made.body.id}/files/${file.id}`,
    filename: "a.txt",
    mediaType: "text/plain",
    metadata: { size: 7 },
  });
  expect((await fetchAs(scout, part.url)).text).toBe("the log");
  expect((await fetchAs(ana, part.url)).text).toBe("the log");
  expect((await fetchAs(await as(url, "viewer:vic"), part.url)).text).toBe("the log");
  expect((await fetchAs(bob, part.url)).body.code).toBe("delegation_not_found");
  expect((await fetchAs(other, part.url)).body.code).toBe("delegation_not_found");
  expect((await fetchAs(scout, `/v1/files/${file.id}`)).body.code).toBe("file_not_found");
});

test("nobody names a file that he may not read, and a hash grants nothing", async () => {
  const { ana, bob, upload, naming, operator } = await world();
  const file = await upload(ana, "secret");
  const { body: made } = await ana.delegate("scout", naming(file.url));
  const asOwn = await bob.delegate("scout", naming(file.url));
  expect([asOwn.status, asOwn.body.code]).toEqual([404, "file_not_found"]);
  const asNamed = await bob.delegate("scout", naming(`/v1/delegations/${made.id}/files/${file.id}`));
  expect([asNamed.status, asNamed.body.code]).toEqual([404, "delegation_not_found"]);
  // In a delegation of one's own, too.
  const { body: own } = await bob.delegate("scout");
  const viaOwn = await bob.delegate("scout", naming(`/v1/delegations/${own.id}/files/${file.id}`));
  expect([viaOwn.status, viaOwn.body.code]).toEqual([404, "file_not_found"]);
  const follow = await bob.call(
    "POST",
    `/v1/delegations/${own.id}/messages`,
    naming(`/v1/delegations/${own.id}/files/${file.id}`),
  );
  expect(follow.body.code).toBe("file_not_found");
  expect((await operator.call("GET", "/v1/delegations?target=scout")).body.delegations).toHaveLength(2);
  // A URL of another host is only a URL.
  const elsewhere = await bob.delegate("scout", naming(`https://files.example/v1/files/${file.id}`));
  expect(elsewhere.body.message.parts[1].url).toBe(`https://files.example/v1/files/${file.id}`);
});

test("output names files, in artifacts, replies and questions, and goes on to the next delegation", async () => {
  const { ana, scout, upload, fetchAs, naming } = await world();
  const { body: made } = await ana.delegate("scout");
  const [{ lease_id: lease }] = (await scout.lease("scout")).body.leases;
  const [image, log, plan] = [
    await upload(scout, "PNG"),
    await upload(scout, "log"),
    await upload(scout, "plan"),
  ];
  const part = (file: { url: string }) => [{ url: file.url, mediaType: "application/octet-stream" }];
  const sent = await scout.call("POST", `/v1/leases/${lease}/artifacts`, {
    artifact: { artifactId: "image", parts: part(image) },
    chunk_id: "1",
  });
  expect(sent.status).toBe(200);
  const asked = await scout.interrupt(lease, { message: { parts: [{ text: "So?" }, ...part(plan)] } });
  const shown = (await ana.get(made.id)).body.interrupt.requests[0].message.parts[1];
  expect((await fetchAs(ana, shown.url)).text).toBe("plan");
  const mine = await upload(ana, "yes");
  await ana.answer(made.id, asked.body.interrupt_id, { message: { parts: part(mine) } });
  const [again] = (await scout.lease("scout")).body.leases;
  const answer = again.delegation.history.at(-1).parts[0];
  expect((await fetchAs(scout, answer.url)).text).toBe("yes");
  const replied = await scout.reply(again.lease_id, { text: undefined, message: { parts: part(log) } });
  expect(replied.status).toBe(200);
  // The repeat changes nothing.
  expect(
    (await scout.reply(again.lease_id, { text: undefined, message: { parts: part(log) } })).body.outcome,
  ).toBe("duplicate");
  const done = (await ana.get(made.id)).body;
  expect((await fetchAs(ana, done.reply.parts[0].url)).text).toBe("log");
  expect((await fetchAs(ana, done.artifacts[0].parts[0].url)).text).toBe("PNG");
  const next = await ana.delegate("other", naming(done.artifacts[0].parts[0].url));
  expect(next.status).toBe(202);
  await ana.erase(made.id);
  expect((await fetchAs(ana, next.body.message.parts[1].url)).text).toBe("PNG");
});

test("a file is named by every address of its broker, also one that it had before; what cannot be read stays a link", async () => {
  const { url, another, operator, ana, bob, scout, upload, naming } = await world();
  const file = await upload(ana, "the log");
  const made = await ana.delegate("scout", naming(file.url.replace(url, "http://errand.internal:4180")));
  const bound = `${url}/v1/delegations/${made.body.id}/files/${file.id}`;
  expect(made.body.message.parts[1]).toMatchObject({ url: bound, metadata: { size: 7 } });
  const moved = await another({ publicUrl: "https://errand.example/tools" });
  // The agent hands the part on, which has the address from before.
  const part = client(moved.url, scout.token);
  const { parts } = (await part.get(made.body.id)).body.message;
  const child = await part.delegate("other", { message: { parts } });
  expect(child.body.message.parts[1].url).toBe(
    `https://errand.example/tools/v1/delegations/${child.body.id}/files/${file.id}`,
  );
  await operator.erase(made.body.id);
  const foreign = bound.replace(url, "https://other.example");
  for (const link of [foreign, file.url.replace(url, "https://other.example")]) {
    const linked = await bob.delegate("scout", naming(link));
    expect([linked.status, linked.body.message.parts[1].url]).toEqual([202, link]);
  }
});

test("a file lasts as long as the delegations that name it, and goes with an erased one at once", async () => {
  const { ana, scout, upload, fetchAs, naming, clock, gateway, stored } = await world();
  const file = await upload(ana, "kept");
  const ids: string[] = [];
  for (let count = 0; count < 2; count += 1) {
    const { body } = await ana.delegate("scout", naming(file.url));
    ids.push(body.id);
    const [{ lease_id: lease }] = (await scout.lease("scout")).body.leases;
    await scout.reply(lease);
  }
  clock.offset_ms += 2 * HOUR_MS;
  await gateway.fileUpkeep.tick();
  await ana.erase(ids[0] ?? "");
  expect((await fetchAs(ana, `/v1/delegations/${ids[1]}/files/${file.id}`)).text).toBe("kept");
  await ana.erase(ids[1] ?? "");
  expect(await stored()).toEqual([]);
  expect((await fetchAs(ana, "/v1/files")).body).toMatchObject({ files: [], bytes: 0 });
});

test("a file goes with the record of its last delegation, at the end of its retention", async () => {
  const { ana, scout, upload, naming, clock, gateway, stored } = await world();
  const file = await upload(ana, "kept");
  await ana.delegate("scout", naming(file.url));
  const [{ lease_id: lease }] = (await scout.lease("scout")).body.leases;
  await scout.reply(lease);
  // Its own day is over, the retention is not.
  clock.offset_ms += 0.5 * HOUR_MS;
  await ana.call("DELETE", `/v1/files/${file.id}`);
  await gateway.fileUpkeep.tick();
  expect(await stored()).toHaveLength(1);
  clock.offset_ms += 2 * HOUR_MS;
  await gateway.sweep.tick();
  await gateway.fileUpkeep.tick();
  expect(await stored()).toEqual([]);
});

test("a refused submit keeps no file for ever", async () => {
  const { ana, upload, naming, clock, gateway, stored, operator } = await world();
  await operator.agent("narrow", { limits: { max_waiting: 1 } });
  await ana.delegate("narrow");
  const file = await upload(ana, "bound in vain");
  const refused = await ana.delegate("narrow", naming(file.url));
  expect(refused.body.code).toBe("queue_full");
  clock.offset_ms += 25 * HOUR_MS;
  await gateway.fileUpkeep.tick();
  expect(await stored()).toEqual([]);
});

test("an agent that is created again owns no file of the deleted one", async () => {
  const { url, operator, scout, upload, fetchAs } = await world();
  const file = await upload(scout, "of the first");
  expect((await fetchAs(scout, "/v1/files")).body.files).toHaveLength(1);
  await operator.call("DELETE", "/v1/agents/scout");
  await operator.agent("scout");
  const second = await as(url, "agent:scout");
  expect((await fetchAs(second, "/v1/files")).body).toMatchObject({ files: [], bytes: 0 });
  expect((await fetchAs(second, `/v1/files/${file.id}`)).body.code).toBe("file_not_found");
});

test("the status says where files are, how many bytes they take, and how many they may", async () => {
  const { url, files, upload, ana, fetchAs } = await world();
  await upload(ana, "seven b");
  const viewer = await as(url, "viewer:vic");
  expect((await viewer.call("GET", "/v1/status")).body.files).toEqual({
    place: files.store.place,
    bytes: 7,
    max_bytes: 10_000_000,
    principal_max_bytes: 20_000_000,
    free_bytes: (await files.store.freeBytes()) === null ? null : expect.any(Number),
  });
  expect((await fetchAs(ana, "/v1/status")).body.files).toBeUndefined();
});
