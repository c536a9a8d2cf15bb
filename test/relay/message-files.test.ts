/** Files of the broker in what `errand relay` sends: in the message, or refused. */
import { expect, test } from "vitest";
import { storageUnavailable } from "../../src/engine/files/file-errors.ts";
import { startA2aServer } from "../support/a2a-server.ts";
import { client } from "../support/broker.ts";
import { fileCalls, startFileBroker } from "../support/files.ts";
import { startRelaying, watching } from "../support/relaying.ts";
import { until } from "../support/until.ts";

const LARGE = Buffer.alloc(900_000, "0123456789abcdef ");

test("small files are put into the message for the A2A server; larger ones fail the delegation unsent", async () => {
  const { url } = await startFileBroker();
  const server = await startA2aServer({
    turn(turn) {
      turn.begin();
      turn.status("COMPLETED", "done");
    },
  });
  const api = client(url);
  await api.agent("remote");
  startRelaying(url, "remote", server.url);
  const { ended } = watching(api);
  const file = {
    url: (await fileCalls(url).upload(LARGE)).body.url,
    filename: "a.log",
    mediaType: "text/plain",
  };
  const elsewhere = { url: "https://example.org/b" };
  const send = async (...parts: object[]) =>
    ended((await api.delegate("remote", { message: { parts: [{ text: "go" }, ...parts] } })).body.id);
  expect(await send(file, elsewhere)).toMatchObject({ state: "completed" });
  const [sent] = server.turns;
  const said = JSON.stringify(sent?.message);
  expect(said).toContain(LARGE.toString("base64"));
  expect(said).toContain("https://example.org/b");
  expect(said).not.toContain("/files/fil_");
  const refused = await send(file, file);
  expect(refused.error).toMatchObject({ code: "payload_too_large", retryable: false });
  expect(refused.error.message).toContain("exceed 1 MiB");
  expect(server.turns).toHaveLength(1);
}, 60_000);

test("while the storage of files is away, the work is returned without an attempt, and nothing is sent", async () => {
  const server = await startA2aServer({ turn: (turn) => turn.status("COMPLETED", "done") });
  let isAway = false;
  const { url } = await startFileBroker(
    {
      wrap: (store) => {
        const read = store.read.bind(store);
        return Object.assign(store, {
          read: (...of: Parameters<typeof read>) => {
            if (isAway) throw storageUnavailable(new Error("away"));
            return read(...of);
          },
        });
      },
    },
    { callbackAllow: ["127.0.0.1"] },
  );
  const api = client(url);
  await api.agent("remote", { delivery: { mode: "push", url: server.url } });
  const file = (await fileCalls(url).upload("a log")).body.url;
  isAway = true;
  const { id } = (await api.delegate("remote", { message: { parts: [{ url: file }] }, max_attempts: 1 }))
    .body;
  const released = await until(async () => {
    const { events } = (await api.events(id)).body;
    return events.find(({ status }: { status: string }) => status === "released");
  });
  expect(released.reason).toBe("a file of the message cannot be loaded from the broker");
  expect((await api.get(id)).body).toMatchObject({ state: "submitted", error: null });
  expect(server.turns).toHaveLength(0);
});
