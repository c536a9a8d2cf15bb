/**
 * A scripted agent that speaks ACP over stdio: `acp-agent.mjs FOLDER`. `FOLDER/script.json` says what it offers and what each
 * prompt does, counted over all its processes. It writes what it gets to `FOLDER/log.jsonl`.
 */
import { randomUUID } from "node:crypto";
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const [folder] = process.argv.slice(2);
const script = JSON.parse(readFileSync(join(folder, "script.json"), "utf8"));
const sessions = join(folder, "sessions");
const turns = join(folder, "turns");
for (const path of [sessions, turns]) mkdirSync(path, { recursive: true });
const log = (entry) =>
  appendFileSync(join(folder, "log.jsonl"), `${JSON.stringify({ pid: process.pid, ...entry })}\n`);
const raw = (text) => new Promise((resolve) => process.stdout.write(text, resolve));

log({ method: "start", env: Object.keys(process.env).filter((name) => name.startsWith("ERRAND_")) });
if (script.start?.exit !== undefined) {
  process.stderr.write(`${script.start.says ?? ""}\n`);
  process.exit(script.start.exit);
}
if (script.start?.print) await raw(script.start.print);
// It neither answers nor ends.
if (script.start?.silent) await new Promise(() => setInterval(() => undefined, 60_000));

/** The settings of a session, as on its first day: it forgets what was set. */
const settings = () => ({
  ...(script.modes && { modes: script.modes }),
  ...(script.configOptions && { configOptions: script.configOptions }),
});
const refuse = ({ code, message, data }) => {
  throw new acp.RequestError(code, message, data);
};
const canceled = new Map();
/** Resolves when the session's turn is canceled. */
const untilCanceled = (sessionId) =>
  new Promise((resolve) => {
    canceled.set(sessionId, resolve);
  });

/** The script of this prompt: the first that no process has taken. */
function nextTurn() {
  for (const [index, turn] of script.turns.entries()) {
    const name = join(turns, String(index));
    if (existsSync(name)) continue;
    writeFileSync(name, "");
    return turn;
  }
  return [{ say: "nothing is left to do" }];
}

async function play(step, { sessionId, client, requestId }) {
  const update = (one) => client.notify(acp.methods.client.session.update, { sessionId, update: one });
  const ask = async (one) => {
    const params = { sessionId, ...one };
    const { outcome } = await client.request(acp.methods.client.session.requestPermission, params);
    log({ method: "outcome", outcome });
    return outcome;
  };
  if (step.say !== undefined) {
    const content = { type: "text", text: step.say };
    await update({ sessionUpdate: "agent_message_chunk", content, ...step.with });
  }
  if (step.update) await update(step.update);
  if (step.ask) await ask(step.ask);
  if (step.askAll) await Promise.all(step.askAll.map(ask));
  if (step.elicit) {
    const params = { sessionId, ...step.elicit };
    const answer = await client.request(acp.methods.client.elicitation.create, params);
    log({ method: "elicited", answer });
  }
  if (step.call) {
    const answer = await client.request(step.call, {}).catch(({ code }) => ({ code }));
    log({ method: "called", answer });
  }
  if (step.put) {
    const [, back] = /\(ERRAND_ARTIFACTS_DIR\): (.+)\n/.exec(step.prompt) ?? [];
    writeFileSync(join(back, step.put), "x".repeat(step.bytes ?? 9));
  }
  if (step.raw) await raw(step.raw);
  if (step.megabyte) await raw("x".repeat(1_100_000));
  if (step.twice) {
    const answer = { jsonrpc: "2.0", id: requestId, result: { stopReason: "refusal" } };
    setImmediate(() => void raw(`${JSON.stringify(answer)}\n`));
  }
  if (step.answer) await raw(`${JSON.stringify({ jsonrpc: "2.0", id: requestId, result: step.answer })}\n`);
  if (step.fail) refuse(step.fail);
  if (step.exit !== undefined) {
    process.stderr.write("out of luck\n");
    process.exit(step.exit);
  }
  if (step.kill) process.kill(process.pid, "SIGKILL");
  if (step.hang) await untilCanceled(sessionId);
  if (step.deaf) await new Promise(() => undefined);
}

const known = (sessionId) => {
  if (!existsSync(join(sessions, sessionId))) refuse({ code: -32002, message: "Resource not found" });
};

acp
  .agent({ name: "scripted" })
  .onRequest(acp.methods.agent.initialize, ({ params }) => {
    log({ method: "initialize", params });
    return {
      protocolVersion: script.protocolVersion ?? acp.PROTOCOL_VERSION,
      agentInfo: { name: script.name ?? "scripted", version: "1" },
      agentCapabilities: script.capabilities ?? {},
    };
  })
  .onRequest(acp.methods.agent.session.new, ({ params }) => {
    log({ method: "session/new", params });
    if (script.refuseNew) refuse(script.refuseNew);
    if (script.deafNew) return new Promise(() => undefined);
    const sessionId = randomUUID();
    writeFileSync(join(sessions, sessionId), "");
    return { sessionId, ...settings() };
  })
  .onRequest(acp.methods.agent.session.load, async ({ params, client }) => {
    log({ method: "session/load", params });
    known(params.sessionId);
    const content = { type: "text", text: "an old answer" };
    const update = { sessionUpdate: "agent_message_chunk", content };
    await client.notify(acp.methods.client.session.update, { sessionId: params.sessionId, update });
    // Some agents replay the rest after their answer.
    setImmediate(
      () => void client.notify(acp.methods.client.session.update, { sessionId: params.sessionId, update }),
    );
    return settings();
  })
  .onRequest(acp.methods.agent.session.resume, ({ params }) => {
    log({ method: "session/resume", params });
    known(params.sessionId);
    return settings();
  })
  .onRequest(acp.methods.agent.session.setMode, ({ params }) => {
    log({ method: "session/set_mode", params });
    return {};
  })
  .onRequest(acp.methods.agent.session.setConfigOption, ({ params }) => {
    log({ method: "session/set_config_option", params });
    return { configOptions: script.configOptions };
  })
  .onNotification(acp.methods.agent.session.cancel, ({ params }) => {
    log({ method: "session/cancel", params });
    canceled.get(params.sessionId)?.();
  })
  .onRequest(acp.methods.agent.session.prompt, async ({ params, client, requestId }) => {
    log({ method: "session/prompt", params });
    const prompt = params.prompt[0]?.text ?? "";
    let stopReason = "end_turn";
    const turn = nextTurn();
    for (const step of turn) {
      if (step.stop) stopReason = step.stop;
      await play({ ...step, prompt }, { sessionId: params.sessionId, client, requestId });
      if (step.hang) stopReason = "cancelled";
    }
    if (turn.some((step) => step.answer)) await new Promise(() => undefined);
    return { stopReason, ...script.prompted };
  })
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
