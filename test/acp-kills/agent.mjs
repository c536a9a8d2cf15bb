/**
 * An ACP agent for kills.ts: `agent.mjs FOLDER`. Each prompt asks for one call, and an allowed call writes a line to
 * `FOLDER/ran`. A conversation is a file, so that it goes on after the process was killed.
 */
import { randomUUID } from "node:crypto";
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import * as acp from "@agentclientprotocol/sdk";

const [folder] = process.argv.slice(2);
const sessions = join(folder, "sessions");
mkdirSync(sessions, { recursive: true });
const fileOf = (id) => join(sessions, id);

function write(path, flags, text) {
  const file = openSync(path, flags);
  writeSync(file, text);
  fsyncSync(file);
  closeSync(file);
}

const OPTIONS = [
  { optionId: "yes", name: "Allow", kind: "allow_once" },
  { optionId: "no", name: "Reject", kind: "reject_once" },
];

const client = acp
  .agent({ name: "killed" })
  .onRequest(acp.methods.agent.initialize, () => ({
    protocolVersion: acp.PROTOCOL_VERSION,
    agentInfo: { name: "killed", version: "1" },
    agentCapabilities: { sessionCapabilities: { resume: {} } },
  }))
  .onRequest(acp.methods.agent.session.new, () => {
    const sessionId = randomUUID();
    writeFileSync(fileOf(sessionId), "");
    return { sessionId };
  })
  .onRequest(acp.methods.agent.session.resume, ({ params }) => {
    if (!existsSync(fileOf(params.sessionId))) throw new acp.RequestError(-32002, "Resource not found");
    return {};
  })
  .onNotification(acp.methods.agent.session.cancel, () => {})
  .onRequest(acp.methods.agent.session.prompt, async ({ params: { sessionId, prompt }, client }) => {
    const say = (text) =>
      client.notify(acp.methods.client.session.update, {
        sessionId,
        update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text } },
      });
    const [, tag = readFileSync(fileOf(sessionId), "utf8")] = /\[(task-\d+)\]/.exec(prompt[0].text) ?? [];
    writeFileSync(fileOf(sessionId), tag);
    const { outcome } = await client.request(acp.methods.client.session.requestPermission, {
      sessionId,
      toolCall: {
        toolCallId: randomUUID(),
        title: `run ${tag}`,
        kind: "execute",
        rawInput: { command: `run ${tag}` },
      },
      options: OPTIONS,
    });
    if (outcome.outcome !== "selected" || outcome.optionId !== "yes") {
      await say(`denied ${tag}`);
      return { stopReason: outcome.outcome === "cancelled" ? "cancelled" : "end_turn" };
    }
    write(join(folder, "ran"), "a", `${tag}\n`);
    // Here a kill leaves the effect unknown.
    await sleep(Math.random() * 300);
    await say(`ran ${tag}`);
    return { stopReason: "end_turn" };
  })
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
// Its worker is gone.
await client.closed;
process.exit();
