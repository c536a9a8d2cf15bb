/** What meets at one upload or file: two writers, an end and a request, an erasure and a new upload, a lost content. */
import { readdir, rm } from "node:fs/promises";
import { request as send } from "node:http";
import { join } from "node:path";
import { expect, test } from "vitest";
import { safeName } from "../../src/engine/files/name-files.ts";
import { as, client, OPERATOR } from "../support/broker.ts";
import { keysIn } from "../support/dump.ts";
import { fileCalls, sha256, startFileBroker } from "../support/files.ts";
import { until } from "../support/until.ts";

/** A PATCH that has sent `first` and waits; `more` sends the rest and resolves to the status. */
function slowPatch(url: string, id: string, first: string, length: number) {
  const outgoing = send(`${url}/v1/uploads/${id}`, {
    method: "PATCH",
    headers: { authorization: `Bearer ${OPERATOR}`, "upload-offset": "0", "content-length": String(length) },
  });
  const status = new Promise<number>((resolve) => {
    outgoing.once("response", (answer) => {
      answer.resume();
      resolve(answer.statusCode ?? 0);
    });
    outgoing.once("error", () => resolve(0));
  });
  outgoing.write(first);
  return {
    status,
    more(rest: string) {
      outgoing.end(rest);
      return status;
    },
  };
}

test("a request that another took over changes nothing in the finished file", async () => {
  const { url, gateway, stored } = await startFileBroker();
  const files = fileCalls(url);
  const { id } = (await files.begin(10)).body;
  const stale = slowPatch(url, id, "e", 10);
  await until(async () => (await files.call("GET", `/v1/uploads/${id}`)).body.offset === 1, {
    what: "a byte",
  });
  const { file } = (await files.patch(id, 1, "123456789")).body;
  expect(file.size).toBe(10);
  await stale.more("vil bytes");
  expect((await files.call("GET", file.url)).text).toBe("e123456789");
  await gateway.fileUpkeep.tick();
  expect((await files.call("GET", file.url)).text).toBe("e123456789");
  expect(await stored()).toHaveLength(1);
});

test("a copy with a wrong hash goes at once, because it counts for nobody", async () => {
  const { url, gateway, stored } = await startFileBroker();
  const files = fileCalls(url);
  const { id } = (await files.begin(10, `?sha256=${sha256("another")}`)).body;
  const stale = slowPatch(url, id, "e", 10);
  await until(async () => (await files.call("GET", `/v1/uploads/${id}`)).body.offset === 1, {
    what: "a byte",
  });
  expect((await files.patch(id, 1, "123456789")).body.code).toBe("hash_mismatch");
  await stale.more("vil bytes");
  await gateway.fileUpkeep.tick();
  expect(await stored()).toEqual([]);
});

test("a request that goes on while its upload is deleted leaves nothing", async () => {
  const { url, gateway, stored } = await startFileBroker();
  const files = fileCalls(url);
  const { id } = (await files.begin(10)).body;
  const going = slowPatch(url, id, "1", 10);
  await until(async () => (await files.call("GET", `/v1/uploads/${id}`)).body.offset === 1, {
    what: "a byte",
  });
  await files.call("DELETE", `/v1/uploads/${id}`);
  await gateway.fileUpkeep.tick();
  expect(await going.more("234567890")).toBe(404);
  await gateway.fileUpkeep.tick();
  expect(await stored()).toEqual([]);
  expect((await files.call("GET", "/v1/files")).body.bytes).toBe(0);
});

test("announced bytes are refused, too, once the disk is short", async () => {
  let free = 1e12;
  const { url } = await startFileBroker({
    wrap: (store) => Object.assign(store, { freeBytes: async () => free }),
  });
  const files = fileCalls(url);
  const { id } = (await files.begin(10)).body;
  free = 0;
  expect((await files.patch(id, 0, "1234567890")).body.code).toBe("storage_full");
});

test("a refused submit binds no file", async () => {
  const { url, redis } = await startFileBroker();
  const [api, files] = [client(url), fileCalls(url)];
  await api.agent("narrow", { limits: { max_waiting: 1 } });
  await api.delegate("narrow");
  const file = (await files.upload("bound in vain")).body;
  const keys = async () => (await keysIn(redis, "{errand}:files:*")).sort();
  const before = await keys();
  const refused = await api.delegate("narrow", { message: { parts: [{ url: file.url }] } });
  expect(refused.body.code).toBe("queue_full");
  expect(await keys()).toEqual(before);
});

test("a late holder binds no file to the finished delegation", async () => {
  const { url } = await startFileBroker();
  const [api, scout] = [client(url), await as(url, "agent:scout")];
  await api.agent("scout");
  const { id } = (await api.delegate("scout")).body;
  const [{ lease_id: lease }] = (await scout.lease("scout")).body.leases;
  await scout.reply(lease);
  const file = (await fileCalls(url, scout.token).upload("late")).body;
  const artifact = { artifactId: "late", parts: [{ url: file.url }] };
  const late = await scout.call("POST", `/v1/leases/${lease}/artifacts`, { artifact });
  expect(late.body.code).toBe("lease_lost");
  expect((await fileCalls(url).call("GET", `/v1/delegations/${id}/files/${file.id}`)).status).toBe(404);
});

test("erasing an old delegation keeps a file that was uploaded again", async () => {
  const { url } = await startFileBroker();
  const [api, files] = [client(url), fileCalls(url)];
  await api.agent("scout");
  const file = (await files.upload("twice")).body;
  const message = { parts: [{ url: file.url }] };
  const { id } = (await api.delegate("scout", { message })).body;
  await api.cancel(id);
  await files.upload("twice");
  await api.erase(id);
  expect((await api.delegate("scout", { message })).status).toBe(202);
});

// The folder is deleted behind the broker's back.
const IN_BUCKET = process.env.ERRAND_TEST_FILES === "s3";
test.skipIf(IN_BUCKET)("an upload brings a lost content back", async () => {
  const { url, files: place, stored } = await startFileBroker();
  const files = fileCalls(url);
  const file = (await files.upload("after a restore")).body;
  for (const name of await readdir(place.store.place))
    await rm(join(place.store.place, name), { recursive: true });
  expect((await files.call("GET", file.url)).body.code).toBe("file_not_found");
  expect((await files.upload("after a restore")).body.id).toBe(file.id);
  expect((await files.call("GET", file.url)).text).toBe("after a restore");
  expect(await stored()).toHaveLength(1);
});

test("a repeated reply with many files is a repeat", async () => {
  const { url } = await startFileBroker();
  const [api, files] = [client(url), fileCalls(url)];
  await api.agent("scout");
  await api.delegate("scout");
  const [{ lease_id: lease }] = (await api.lease("scout")).body.leases;
  const file = (await files.upload("one of many")).body;
  const parts = Array.from({ length: 600 }, () => ({ url: file.url }));
  expect((await api.reply(lease, { text: undefined, message: { parts } })).status).toBe(200);
  const again = await api.reply(lease, { text: undefined, message: { parts } });
  expect([again.status, again.body.outcome]).toEqual([200, "duplicate"]);
});

test("a content that cannot be deleted delays no other, and does not fail the erasure", async () => {
  let isBroken = true;
  const removed: string[] = [];
  const { url, gateway } = await startFileBroker({
    wrap: (store) =>
      Object.assign(store, {
        remove: async (name: string) => {
          if (isBroken) throw new Error("EIO");
          removed.push(name);
        },
      }),
  });
  const [api, files] = [client(url), fileCalls(url)];
  await api.agent("scout");
  const file = (await files.upload("stuck")).body;
  const { id } = (await api.delegate("scout", { message: { parts: [{ url: file.url }] } })).body;
  await api.cancel(id);
  expect((await api.erase(id)).status).toBe(204);
  isBroken = false;
  // The upkeep tries again.
  await gateway.fileUpkeep.tick();
  expect(removed).toHaveLength(1);
});

test.each([
  ["../../etc/passwd", "etc/passwd"],
  ["a/./b//c.txt", "a/b/c.txt"],
  ["C:\\x\\..\\y.txt", "C:/x/y.txt"],
  ["a\r\nb\0.txt", "ab.txt"],
  ["/", "file"],
])("the name %j is stored as %j", (given, stored) => {
  expect(safeName(given)).toBe(stored);
});

test("deleting or erasing what is one's own leaves the backlog of others to the upkeep", async () => {
  const { url, clock, gateway, stored } = await startFileBroker();
  await client(url).agent("scout");
  const bob = await as(url, "caller:bob");
  const [own, bobs] = [fileCalls(url), fileCalls(url, bob.token)];
  await own.upload("expires");
  clock.offset_ms = 25 * 3_600_000;
  const file = (await bobs.upload("bob's")).body;
  const named = (await bobs.upload("named")).body;
  expect(await stored()).toHaveLength(3);
  expect((await bobs.call("DELETE", `/v1/files/${file.id}`)).status).toBe(204);
  expect(await stored()).toHaveLength(2);
  const made = await bob.delegate("scout", { message: { parts: [{ url: named.url }] } });
  await bob.cancel(made.body.id);
  expect((await bob.erase(made.body.id)).status).toBe(204);
  expect(await stored()).toHaveLength(1);
  await gateway.fileUpkeep.tick();
  expect(await stored()).toEqual([]);
});

test("the content of one request is not read again for its hash", async () => {
  let reads = 0;
  const { url } = await startFileBroker({
    wrap: (store) =>
      new Proxy(store, {
        get(target, name) {
          if (name === "read") reads += 1;
          const value: unknown = Reflect.get(target, name, target);
          return typeof value === "function" ? value.bind(target) : value;
        },
      }),
  });
  const files = fileCalls(url);
  const one = (await files.upload("one")).body;
  expect([one.sha256, reads]).toEqual([sha256("one"), 0]);
  const { id } = (await files.begin(10)).body;
  await files.patch(id, 0, "12345");
  const two = (await files.patch(id, 5, "67890")).body.file;
  expect([two.sha256, reads]).toEqual([sha256("1234567890"), 1]);
});
