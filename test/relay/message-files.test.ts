/** Files of the broker in what `errand relay` sends: in the message, or refused. */
import { expect, test } from "vitest";
import { startA2aServer } from "../support/a2a-server.ts";
import { client } from "../support/broker.ts";
import { fileCalls, startFileBroker } from "../support/files.ts";
import { startRelaying, watching } from "../support/relaying.ts";

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
