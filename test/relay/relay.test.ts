/** The relay between a real broker and real A2A servers, 1.0 and 0.3, streaming or not. */
import { describe, expect, test, vi } from "vitest";
import { type A2aServerOptions, startA2aServer, type Version } from "../support/a2a-server.ts";
import { client, startBroker } from "../support/broker.ts";
import { startRelaying } from "../support/relaying.ts";
import { until } from "../support/until.ts";

vi.setConfig({ testTimeout: 60_000 });
const SLOW = { timeoutMs: 30_000 };

async function setup(options: A2aServerOptions, relaying: Parameters<typeof startRelaying>[3] = {}) {
  const broker = await startBroker();
  const server = await startA2aServer(options);
  const api = client(broker.url);
  await api.agent("remote");
  const relayed = startRelaying(broker.url, "remote", server.url, relaying);
  const delegate = async (task: string, more = {}): Promise<string> =>
    (await api.delegate("remote", { task, ...more })).body.id;
  const ended = (id: string) =>
    until(async () => {
      const { body } = await api.get(id);
      return body.finished_at !== null && body;
    }, SLOW);
  const inState = (id: string, state: string) =>
    until(async () => {
      const { body } = await api.get(id);
      return body.state === state && body;
    }, SLOW);
  return { ...broker, server, api, relayed, delegate, ended, inState };
}

const KINDS: [Version, boolean][] = [
  ["1.0", true],
  ["1.0", false],
  ["0.3", true],
  ["0.3", false],
];

describe.each(KINDS)("A2A %s, streaming %s", (version, streaming) => {
  test("a task's progress, artifacts and end are the delegation's", async () => {
    const { delegate, ended, server, api } = await setup({
      version,
      streaming,
      turn(turn) {
        turn.begin();
        turn.status("WORKING", "counting");
        turn.artifact("out", "one ");
        turn.artifact("out", "two", { append: true, lastChunk: true });
        turn.status("COMPLETED", `did ${turn.text}`);
      },
    });
    const id = await delegate("count");
    const done = await ended(id);
    expect(done).toMatchObject({ state: "completed", attempt: 1, reply: { parts: [{ text: "did count" }] } });
    expect(done.artifacts).toMatchObject([{ artifactId: "out", parts: [{ text: "one " }, { text: "two" }] }]);
    expect(server.tasks()).toHaveLength(1);
    const [turn] = server.turns;
    expect(turn?.message).toMatchObject({
      messageId: done.message.messageId,
      contextId: done.context_id,
      metadata: { delegation_id: id },
    });
    expect(JSON.stringify(turn?.message)).not.toContain("lse_");
    expect((await api.lease("remote", { wait_seconds: 0 })).body.leases).toEqual([]);
  });
});
