/** Uploads: at once, in pieces, resumed, refused; nothing stays of what can never become a file. */
import { expect, test } from "vitest";
import { as } from "../support/broker.ts";
import { keysIn } from "../support/dump.ts";
import { fileCalls, sha256, startFileBroker } from "../support/files.ts";

const CONTENT = "a report\nof two lines\n";

test("a file in one request, read back whole and in ranges", async () => {
  const { url } = await startFileBroker();
  const files = fileCalls(url);
  const { status, body, headers } = await files.upload(CONTENT);
  expect(status).toBe(201);
  expect(body).toMatchObject({ size: CONTENT.length, sha256: sha256(CONTENT) });
  expect(body.url).toBe(`${url}/v1/files/${body.id}`);
  expect(headers.get("location")).toBe(`/v1/files/${body.id}`);
  const whole = await files.call("GET", body.url);
  expect(whole.text).toBe(CONTENT);
  expect(Object.fromEntries(whole.headers)).toMatchObject({
    "content-type": "application/octet-stream",
    "content-disposition": `attachment; filename="${body.sha256}"`,
    "content-security-policy": "default-src 'none'; sandbox",
    "x-content-type-options": "nosniff",
    "content-length": String(CONTENT.length),
    etag: `"${body.sha256}"`,
  });
  const range = (value: string, more = {}) =>
    files.call("GET", body.url, undefined, { range: value, ...more });
  const tail = await range("bytes=2-5");
  expect([tail.status, tail.text, tail.headers.get("content-range")]).toEqual([
    206,
    CONTENT.slice(2, 6),
    `bytes 2-5/${CONTENT.length}`,
  ]);
  expect((await range("bytes=-4")).text).toBe(CONTENT.slice(-4));
  expect((await range("bytes=5-")).text).toBe(CONTENT.slice(5));
  expect((await range("bytes=0-3,6-7")).status).toBe(200);
  expect((await range("bytes=2-5", { "if-range": '"other"' })).status).toBe(200);
  expect((await range("bytes=999-")).body).toMatchObject({
    status: 416,
    code: "range_not_satisfiable",
    details: { size: CONTENT.length },
  });
  expect((await files.call("GET", body.url, undefined, { "if-none-match": `"${body.sha256}"` })).status).toBe(
    304,
  );
  const head = await files.call("HEAD", body.url);
  expect([head.status, head.headers.get("content-length"), head.text]).toEqual([
    200,
    String(CONTENT.length),
    "",
  ]);
});

test("an upload in pieces goes on where it is, at another gateway, and is one file", async () => {
  const { url, another, stored } = await startFileBroker();
  const files = fileCalls(url);
  const { status, body: begun, headers } = await files.begin(CONTENT.length);
  expect([status, begun.offset, begun.file]).toEqual([201, 0, null]);
  expect(headers.get("location")).toBe(`/v1/uploads/${begun.id}`);
  expect((await files.patch(begun.id, 0, CONTENT.slice(0, 5))).body).toMatchObject({ offset: 5, file: null });
  const wrong = await files.patch(begun.id, 3, CONTENT.slice(3));
  expect([wrong.status, wrong.body.code, wrong.body.details.offset]).toEqual([409, "upload_offset", 5]);
  const second = await another();
  const there = fileCalls(second.url);
  const seen = await there.call("HEAD", `/v1/uploads/${begun.id}`);
  expect([seen.headers.get("upload-offset"), seen.headers.get("upload-length")]).toEqual([
    "5",
    String(CONTENT.length),
  ]);
  const last = await there.patch(begun.id, 5, CONTENT.slice(5));
  expect(last.body).toMatchObject({ offset: CONTENT.length, file: { sha256: sha256(CONTENT) } });
  expect(last.headers.get("errand-file")).toBe(last.body.file.url);
  // The answer was lost: the same piece again.
  expect((await there.patch(begun.id, CONTENT.length, "")).body.file).toEqual(last.body.file);
  expect((await there.call("GET", `/v1/uploads/${begun.id}`)).body.file).toEqual(last.body.file);
  expect(await stored()).toHaveLength(1);
});

test("the length may be said at the end, and a file may be empty", async () => {
  const { url } = await startFileBroker();
  const files = fileCalls(url);
  const { body } = await files.begin(undefined);
  expect(body.length).toBe(null);
  await files.patch(body.id, 0, "abc");
  const done = await files.patch(body.id, 3, "", { "upload-length": "3" });
  expect(done.body.file).toMatchObject({ size: 3, sha256: sha256("abc") });
  expect((await files.begin(0)).body.file).toMatchObject({ size: 0, sha256: sha256("") });
  expect((await files.upload("")).body).toMatchObject({ size: 0 });
  const streamed = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(new TextEncoder().encode("of unknown"));
      controller.enqueue(new TextEncoder().encode(" length"));
      controller.close();
    },
  });
  const chunked = await files.call("POST", "/v1/files", streamed);
  expect(chunked.body).toMatchObject({ size: 17, sha256: sha256("of unknown length") });
});

test("a wrong hash, too many bytes and a full quota have codes and leave nothing", async () => {
  const { url, gateway, stored } = await startFileBroker({ maxBytes: 1_000, principalBytes: 1_500 });
  const files = fileCalls(url);
  const mismatch = await files.upload("abc", `?sha256=${sha256("abd")}`);
  expect([mismatch.status, mismatch.body.code]).toEqual([422, "hash_mismatch"]);
  expect(mismatch.body.details).toEqual({ expected: sha256("abd"), sha256: sha256("abc") });
  const large = await files.upload("x".repeat(1_001));
  expect([large.status, large.body.code, large.body.details.max_bytes]).toEqual([
    413,
    "payload_too_large",
    1_000,
  ]);
  const { body: announced } = await files.begin(3);
  const more = await files.patch(announced.id, 0, "abcd");
  expect([more.status, more.body.code]).toEqual([413, "payload_too_large"]);
  expect((await files.patch(announced.id, 0, "abc")).body.code).toBe("upload_not_found");
  await files.upload("y".repeat(900));
  const over = await files.begin(700);
  expect([over.status, over.body.code, over.body.details]).toEqual([
    429,
    "quota_exceeded",
    { quota: "principal_file_bytes", limit: 1_500 },
  ]);
  const { body: unknown } = await files.begin(undefined);
  expect((await files.patch(unknown.id, 0, "z".repeat(601))).body.code).toBe("quota_exceeded");
  await gateway.fileUpkeep.tick();
  expect(await stored()).toHaveLength(1);
  expect((await files.call("GET", "/v1/files")).body).toMatchObject({ bytes: 900, max_bytes: 1_500 });
});

test("a request to begin that is repeated with its key begins one upload, at any gateway", async () => {
  const { url, another, clock, gateway } = await startFileBroker();
  const files = fileCalls(url);
  const there = fileCalls((await another()).url);
  const begin = (from: typeof files, key: string, length = "100", query = "") =>
    from.call("POST", `/v1/uploads${query}`, undefined, { "upload-length": length, "idempotency-key": key });
  const bytes = async () => (await files.call("GET", "/v1/files")).body.bytes;
  const [one, two] = await Promise.all([begin(files, "a"), begin(there, "a")]);
  expect([one.status, two.status, two.body.id]).toEqual([201, 201, one.body.id]);
  expect([one, two].filter(({ headers }) => headers.get("idempotency-replayed") === "true")).toHaveLength(1);
  expect(await bytes()).toBe(100);
  for (const other of [
    await begin(files, "a", "99"),
    await begin(files, "a", "100", `?sha256=${sha256("x")}`),
  ])
    expect([other.status, other.body.code]).toEqual([422, "idempotency_conflict"]);
  expect((await begin(files, "")).body.code).toBe("invalid_request");
  await files.patch(one.body.id, 0, "x".repeat(60));
  expect((await begin(there, "a")).body).toMatchObject({ id: one.body.id, offset: 60 });
  // Another principal's key is another one.
  const bob = fileCalls(url, (await as(url, "caller:bob")).token);
  expect((await begin(bob, "a")).body.id).not.toBe(one.body.id);
  const done = await files.patch(one.body.id, 60, "x".repeat(40));
  expect((await begin(files, "a")).body.file).toEqual(done.body.file);
  // Nothing of an ended upload keeps its key.
  const { id } = (await begin(files, "b")).body;
  await files.call("DELETE", `/v1/uploads/${id}`);
  expect((await begin(files, "b")).body.id).not.toBe(id);
  clock.offset_ms = 25 * 3_600_000;
  await gateway.fileUpkeep.tick();
  expect(await keysIn(gateway.broker.redis, "{errand}:files:begun:*")).toHaveLength(1);
  const empty = await begin(files, "c", "0");
  expect((await begin(files, "c", "0")).body.file).toEqual(empty.body.file);
});

test("bytes count from the first one, and an upload that is not continued expires", async () => {
  const { url, clock, gateway, stored } = await startFileBroker();
  const files = fileCalls(url);
  const { body } = await files.begin(5_000);
  await files.patch(body.id, 0, "half");
  expect((await files.call("GET", "/v1/files")).body).toMatchObject({ files: [], bytes: 5_000 });
  await files.begin(undefined);
  clock.offset_ms += 23 * 3_600_000;
  expect(await gateway.fileUpkeep.tick()).toBe(0);
  clock.offset_ms += 2 * 3_600_000;
  await gateway.fileUpkeep.tick();
  expect((await files.patch(body.id, 4, "rest")).body.code).toBe("upload_not_found");
  expect((await files.call("GET", "/v1/files")).body.bytes).toBe(0);
  expect(await stored()).toEqual([]);
});

test("an ended upload leaves nothing", async () => {
  const { url, gateway, stored } = await startFileBroker();
  const files = fileCalls(url);
  const { body } = await files.begin(9);
  await files.patch(body.id, 0, "half");
  expect((await files.call("DELETE", `/v1/uploads/${body.id}`)).status).toBe(204);
  expect((await files.call("DELETE", `/v1/uploads/${body.id}`)).body.code).toBe("upload_not_found");
  await gateway.fileUpkeep.tick();
  expect(await stored()).toEqual([]);
  expect((await files.call("GET", "/v1/files")).body.bytes).toBe(0);
});

test("an upload answers alike whether the content is known or not, and belongs to its principal", async () => {
  const { url, stored } = await startFileBroker();
  const [ana, bob] = [await as(url, "caller:ana"), await as(url, "caller:bob")];
  const first = await fileCalls(url, ana.token).upload(CONTENT);
  const other = await fileCalls(url, bob.token).upload(CONTENT);
  expect(Object.keys(other.body)).toEqual(Object.keys(first.body));
  expect([other.status, other.body.id === first.body.id]).toEqual([201, false]);
  const foreign = await fileCalls(url, bob.token).call("GET", `/v1/files/${first.body.id}`);
  expect([foreign.status, foreign.body.code]).toEqual([404, "file_not_found"]);
  expect((await fileCalls(url, bob.token).call("DELETE", `/v1/files/${first.body.id}`)).status).toBe(404);
  const upload = await fileCalls(url, ana.token).begin(3);
  expect((await fileCalls(url, bob.token).patch(upload.body.id, 0, "abc")).body.code).toBe(
    "upload_not_found",
  );
  // The same content of the same principal is one file.
  expect((await fileCalls(url, ana.token).upload(CONTENT)).body.id).toBe(first.body.id);
  expect((await fileCalls(url, ana.token).call("GET", "/v1/files")).body.files).toHaveLength(1);
  expect(await stored()).not.toHaveLength(0);
});

test("bad headers and a broker without files say what to do", async () => {
  const { url } = await startFileBroker();
  const files = fileCalls(url);
  const bare = await files.call("POST", "/v1/uploads");
  expect([bare.status, bare.body.details.issues[0].path]).toEqual([400, "Upload-Length"]);
  const { body } = await files.begin(3);
  const noOffset = await files.call("PATCH", `/v1/uploads/${body.id}`, "abc");
  expect([noOffset.status, noOffset.body.details.issues[0].path]).toEqual([400, "Upload-Offset"]);
  expect((await files.patch(body.id, 0, "abc", { "upload-length": "x" })).status).toBe(400);
  expect((await files.call("POST", "/v1/files?sha256=abc", "abc")).status).toBe(400);
  expect((await files.upload("abc")).status).toBe(201);
  expect((await files.call("POST", "/v1/files", "abc", { "content-encoding": "gzip" })).status).toBe(415);
  for (const [method, path, headers] of [
    ["POST", "/v1/files", {}],
    ["PATCH", `/v1/uploads/${body.id}`, { "upload-offset": "0" }],
  ] as const) {
    const type = { "content-type": "multipart/form-data; boundary=b" };
    const form = await files.call(method, path, "abc", { ...headers, ...type });
    expect(form.body).toMatchObject({ status: 415, code: "unsupported_media_type" });
  }
  expect((await files.call("GET", "/v1/files/nope")).status).toBe(404);
  const off = await startFileBroker({}, { files: undefined });
  expect((await fileCalls(off.url).upload("abc")).body).toMatchObject({ status: 501, code: "files_off" });
});

test("a full disk has a code and leaves nothing", async () => {
  let free = 1e12;
  const full = await startFileBroker({
    wrap: (store) => {
      store.freeBytes = async () => free;
      return store;
    },
  });
  const files = fileCalls(full.url);
  const { body } = await files.begin(undefined);
  free = 1_000;
  const refused = await files.patch(body.id, 0, "abc");
  expect([refused.status, refused.body.code, refused.body.retryable]).toEqual([507, "storage_full", true]);
  expect((await files.upload("abc")).body.code).toBe("storage_full");
  await full.gateway.fileUpkeep.tick();
  expect(await full.stored()).toEqual([]);
  expect((await files.call("GET", "/v1/files")).body.bytes).toBe(0);
});
