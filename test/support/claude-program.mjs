/**
 * Speaks as Claude Code 2.1.331 does in print mode with messages both ways, and plays a script. Its first argument is the
 * folder with the script; it writes there what it gets (log.jsonl), and its conversations.
 */
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { appendFileSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";

const [folder, ...args] = process.argv.slice(2);
const script = JSON.parse(readFileSync(join(folder, "script.json"), "utf8"));
for (const name of ["turns", "sessions"]) mkdirSync(join(folder, name), { recursive: true });
const log = (entry) =>
  appendFileSync(join(folder, "log.jsonl"), `${JSON.stringify({ pid: process.pid, ...entry })}\n`);
const flagged = (flag) => (args.includes(flag) ? args[args.indexOf(flag) + 1] : undefined);
const emit = (event) => process.stdout.write(`${JSON.stringify({ ...event, session_id: session })}\n`);

const resumed = flagged("--resume");
const session = resumed ?? randomUUID();
const file = join(folder, "sessions", session);
const hooks =
  flagged("--settings") && JSON.parse(readFileSync(flagged("--settings"), "utf8")).hooks.PreToolUse;
const asksHost = flagged("--permission-prompt-tool") === "stdio";
const settings = flagged("--settings");
log({
  method: "start",
  args,
  cwd: process.cwd(),
  mode: settings && (statSync(settings).mode & 0o777).toString(8),
  env: Object.keys(process.env)
    .filter((name) => name.startsWith("ERRAND_"))
    .sort(),
});

if (resumed && !existsSync(file)) {
  const errors = [`No conversation found with session ID: ${resumed}`];
  const none = { num_turns: 0, stop_reason: null, permission_denials: [], errors, result_index: 0 };
  emit({ type: "result", subtype: "error_during_execution", is_error: true, ...none });
  process.exit(1);
}

const waiting = new Map();
const queue = [];
let isClosed = false;
let wake = () => {};
let denials = [];

createInterface({ input: process.stdin })
  .on("line", (line) => {
    const message = JSON.parse(line);
    if (message.type === "control_response") {
      emit(message);
      waiting.get(message.response.request_id)?.(message.response);
    } else {
      log({ method: "user", text: message.message.content[0].text });
      queue.push(message);
      wake();
    }
  })
  .on("close", () => {
    isClosed = true;
    for (const resolve of waiting.values()) resolve(undefined);
    wake();
  });

const replay = (message) => emit({ ...message, isReplay: true });
const assistant = (part) => emit({ type: "assistant", message: { role: "assistant", content: [part] } });
const toolResult = (id, content, isError) =>
  emit({
    type: "user",
    message: {
      role: "user",
      content: [{ type: "tool_result", tool_use_id: id, content, is_error: isError }],
    },
  });

async function hookSays({ id, name, input }) {
  if (!hooks) return {};
  const child = spawn("sh", ["-c", hooks[0].hooks[0].command], { stdio: ["pipe", "pipe", "inherit"] });
  child.stdin.end(
    JSON.stringify({
      hook_event_name: "PreToolUse",
      permission_mode: script.mode ?? "default",
      tool_name: name,
      tool_input: input,
      tool_use_id: id,
    }),
  );
  let text = "";
  for await (const chunk of child.stdout) text += chunk;
  const said = JSON.parse(text).hookSpecificOutput;
  log({ method: "hook", id, said });
  return said;
}

async function hostSays({ id, name, input }) {
  if (name === "Read") return { behavior: "allow" };
  if (!asksHost || isClosed) return { behavior: "deny", message: `${name} needs approval.` };
  const request_id = randomUUID();
  const answer = new Promise((resolve) => waiting.set(request_id, resolve));
  const request = { subtype: "can_use_tool", tool_name: name, input, tool_use_id: id, ...script.asked };
  emit({ type: "control_request", request_id, request });
  const got = await answer;
  log({ method: "answered", id, response: got?.response });
  return (
    got?.response ?? { behavior: "deny", message: "Tool permission stream closed before response received" }
  );
}

/** Returns true if the call is put off. */
async function use(call, said) {
  if (said.permissionDecision === "defer" && !script.ignoresDefer) return true;
  if (said.permissionDecision === "defer") delete said.permissionDecision;
  const decided =
    script.ignoresDefer === "deny" && said.permissionDecision === undefined
      ? { behavior: "deny", message: "Another hook denies it." }
      : said.permissionDecision === undefined
        ? await hostSays(call)
        : said.permissionDecision === "allow" && script.hasAskRule
          ? await hostSays({ ...call, input: said.updatedInput ?? call.input })
          : {
              behavior: said.permissionDecision,
              updatedInput: said.updatedInput,
              message: said.permissionDecisionReason,
            };
  if (decided.behavior === "allow") {
    log({ method: "ran", id: call.id, name: call.name, input: decided.updatedInput ?? call.input });
    toolResult(call.id, "(no output)", false);
  } else {
    denials.push({ tool_name: call.name, tool_use_id: call.id, tool_input: call.input });
    toolResult(call.id, decided.message, true);
  }
  // Messages that came meanwhile are read with the result.
  for (const message of queue.splice(0)) replay(message);
  return false;
}

/** Plays steps until one is put off, or the turn ends. */
async function play(steps) {
  let text = "";
  for (const [index, step] of steps.entries()) {
    while (queue.length < (step.queued ?? 0)) await new Promise((resolve) => setTimeout(resolve, 10));
    if (step.say !== undefined) {
      text = step.say;
      assistant({ type: "text", text });
    }
    const denied = denials.map(({ tool_name: name, tool_input: input }) => ({ name, input }));
    const calls = (step.use ?? (step.useDenied ? denied : [])).map((call) => ({
      id: `toolu_${randomUUID()}`,
      ...call,
    }));
    for (const call of calls) assistant({ type: "tool_use", ...call });
    const said = await Promise.all(calls.map(hookSays));
    const putOff = await Promise.all(calls.map((call, at) => use(call, said[at])));
    const kept = calls.find((_, at) => putOff[at]);
    if (kept) {
      // Which one is put off depends on whose hook is first.
      const others = calls.filter((call) => call !== kept).map(({ name, input }) => ({ name, input }));
      const rest = steps.slice(index + 1).map((next) => (next.useOthers ? { use: others } : next));
      writeFileSync(file, JSON.stringify({ pending: kept, rest }));
      result("", { stop_reason: "tool_deferred", terminal_reason: "tool_deferred", deferred_tool_use: kept });
      if (script.endsWhenDeferred) process.exit(0);
      return;
    }
    if (step.raw) process.stdout.write(step.raw);
    if (step.megabyte) process.stdout.write("x".repeat(1_100_000));
    if (step.hang) await new Promise(() => setInterval(() => undefined, 60_000));
    if (step.exit !== undefined) process.exit(step.exit);
    if (step.result) return result(text, step.result);
  }
  result(text, {});
}

/** Counts over the whole conversation, as the program does. */
function costs() {
  const counted = join(folder, "cost");
  const cost = (existsSync(counted) ? Number(readFileSync(counted, "utf8")) : 0) + 0.25;
  writeFileSync(counted, String(cost));
  return cost;
}

function result(text, more) {
  const common = { num_turns: 1, stop_reason: "end_turn", total_cost_usd: costs(), result_index: 0 };
  const ends = { type: "result", subtype: "success", is_error: false, result: text, ...common };
  emit({ ...ends, permission_denials: denials, queued_turn_count: queue.length, ...more });
  denials = [];
}

/** The script of this turn: the first that no process has taken. */
function nextTurn() {
  for (const [index, turn] of script.turns.entries()) {
    const name = join(folder, "turns", String(index));
    if (existsSync(name)) continue;
    writeFileSync(name, "");
    return turn;
  }
  return [{ say: "nothing is left to do" }];
}

if (script.greets) emit({ type: "system", subtype: "hook_started" });
const { pending, rest } = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {};
if (pending) {
  if (await use(pending, await hookSays(pending)))
    result("", {
      stop_reason: "tool_deferred",
      terminal_reason: "tool_deferred",
      deferred_tool_use: pending,
    });
  else {
    writeFileSync(file, "{}");
    await play(rest);
  }
}
for (;;) {
  if (queue.length === 0) {
    if (isClosed) break;
    await new Promise((resolve) => {
      wake = resolve;
    });
    continue;
  }
  emit({ type: "system", subtype: "init", permissionMode: "default", claude_code_version: "2.1.331" });
  if (!existsSync(file)) writeFileSync(file, "{}");
  replay(queue.shift());
  await play(nextTurn());
}
process.exit(0);
