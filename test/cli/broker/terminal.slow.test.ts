/** Properties of every command's output: it fits a real terminal, has no escapes without one, and its JSON parses. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { buildProgram, everyCommand, pathOf } from "../../../src/cli/program.ts";
import { displayWidth } from "../../../src/cli/show/text.ts";
import { client, OPERATOR, startBroker } from "../../support/broker.ts";
import { freshDir } from "../../support/program.ts";
import { host } from "../fake-host.ts";

const PROGRAM = fileURLToPath(new URL("../../support/pty-commands.mjs", import.meta.url));
/** Opens a terminal of so many columns, and passes on what it shows. */
const ON_TERMINAL = `
import fcntl, os, pty, struct, sys, termios
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, int(sys.argv[1]), 0, 0))
    os.execvp(sys.argv[2], sys.argv[2:])
while True:
    try: data = os.read(fd, 65536)
    except OSError: break
    if not data: break
    os.write(1, data)
os.waitpid(pid, 0)
`;
const HOSTILE = "\u001b[31mred\u001b[0m 長い文章を書く \u202e👩‍👩‍👧 ".repeat(30);
const ESCAPE = "\u001b";

/** A broker with every kind of delegation, with texts that are long, wide and hostile, and calls of every command. */
async function world() {
  const { url } = await startBroker({ callbackAllow: ["127.0.0.1"] });
  const api = client(url);
  await api.agent("scout", { description: HOSTILE, limits: { max_attempts: 1 } });
  const make = async () => {
    const { id } = (await api.delegate("scout", { task: HOSTILE })).body;
    const [{ lease_id }] = (await api.lease("scout")).body.leases;
    return { id: String(id), lease: String(lease_id) };
  };
  const done = await make();
  const artifacts = [{ artifactId: "a", name: HOSTILE, parts: [{ text: HOSTILE }] }];
  await api.reply(done.lease, { text: HOSTILE, artifacts });
  const failed = await make();
  const error = { code: "no_disk", message: HOSTILE };
  await api.reply(failed.lease, { state: "failed", text: undefined, error });
  const asks = await make();
  await api.message(asks.id, HOSTILE);
  await api.interrupt(asks.lease, { text: HOSTILE, options: ["approve", "deny"] });
  const works = await make();
  await api.heartbeat(works.lease, { progress: { message: HOSTILE, done: 1, total: 2 } });
  const waits = String((await api.delegate("scout", { task: HOSTILE, parent_id: works.id })).body.id);
  const delegation = { target: "scout", task: HOSTILE };
  const scheduled = { every_seconds: 3600, name: HOSTILE.slice(0, 200), delegation };
  const schedule = String((await api.call("POST", "/v1/schedules", scheduled)).body.id);
  await api.call("POST", `/v1/schedules/${schedule}/run`);
  const hostile = {
    agent: "scout",
    action: HOSTILE.slice(0, 200),
    note: HOSTILE.slice(0, 200),
    decision: "approve",
  };
  const constraint = { name: HOSTILE.slice(0, 200), equals: HOSTILE.slice(0, 200) };
  const rule = (await api.call("POST", "/v1/rules", { ...hostile, arguments: [constraint] })).body.id;
  const told = {
    events: ["ended"],
    name: HOSTILE.slice(0, 200),
    deliver: [{ kind: "webhook", url: "http://127.0.0.1:1/hook" }],
    filter: { delegators: ["caller:*"] },
  };
  const subscription = String((await api.call("POST", "/v1/subscriptions", told)).body.id);
  const dir = freshDir();
  const batch = join(dir, "batch.jsonl");
  const many = [{ task: HOSTILE }, { target: "nobody", task: HOSTILE }, { task: 1 }];
  writeFileSync(batch, many.map((one) => `${JSON.stringify(one)}\n`).join(""));
  const soon = ["--timeout", "0.1"];
  const commands = [
    ["list"],
    ["list", "--tree"],
    ["list", "--state", "working", "--target", "nobody"],
    ["list", "--limit", "1"],
    ...[done.id, failed.id, asks.id, works.id, waits].map((id) => ["get", id]),
    ["get", asks.id, "--history"],
    ["get", waits, "--wait", ...soon],
    ["get", done.id, "--artifacts", dir],
    ["get", "zzzz"],
    ["results"],
    ["logs", asks.id],
    ["logs", failed.id, "--follow"],
    ["watch", failed.id, "--after", "0"],
    ["agent", "list"],
    ["agent", "get", "scout"],
    ["agent", "get", "scuot"],
    ["agent", "workers", "scout"],
    ["agent", "put", "scout", "--lease", "30s"],
    ["agent", "pause", "scout"],
    ["agent", "resume", "scout"],
    ["agent", "delete", "scout"],
    ["schedule", "list"],
    ["schedule", "get", schedule],
    ["schedule", "change", schedule, "--every", "2h"],
    ["schedule", "runs", schedule],
    ["schedule", "run", schedule],
    ["schedule", "pause", schedule],
    ["schedule", "resume", schedule],
    ["schedule", "delete", `sch_${"0".repeat(26)}`],
    ["schedule", "create", "scout", "x", "--cron", "0 9 * *"],
    [
      "rules",
      "create",
      "scout",
      HOSTILE.slice(0, 200),
      "--equals",
      `x=${HOSTILE.slice(0, 200)}`,
      "--note",
      "x",
    ],
    ["rules", "list"],
    ["rules", "get", rule],
    ["rules", "revoke", rule],
    [
      "notify",
      "create",
      "--agent",
      "nobody",
      "--ntfy",
      "https://ntfy.sh/topic",
      "--name",
      HOSTILE.slice(0, 200),
    ],
    ["notify", "list"],
    ["notify", "get", subscription],
    ["notify", "change", subscription, "--name", "nights"],
    ["notify", "test", subscription],
    ["notify", "resume", subscription],
    ["notify", "delete", subscription],
    ["stats"],
    ["status"],
    ["top", "--once"],
    ["audit"],
    ["answers"],
    ["answers", "--outcome", "expired", "--limit", "1"],
    ["token", "create", "caller:alice"],
    ["token", "list"],
    ["token", "revoke", "0000000000"],
    ["files", "list"],
    ["files", "delete", `fil_${"0".repeat(16)}_${"0".repeat(64)}`],
    ["sessions", "list"],
    ["sessions", "link"],
    ["sessions", "revoke", "0000000000"],
    ["invite", "alice"],
    ["doctor"],
    ["demo", "--yes"],
    ["completion", "--list", "questions"],
    ["backup", join(dir, "no", "folder")],
    ["migrate", "--data-dir", dir, "--to-data-dir", join(dir, "copy"), "--dry-run"],
    ["restore", batch],
    ["relay", "--agent", "scout", "--to", "nowhere"],
    ["message", asks.id, "x"],
    ["message", works.id, "x"],
    ["approve", done.id],
    ["approve", asks.id, "--data", "{}"],
    ["deny", asks.id, done.id, "--yes"],
    ["answer", asks.id, "x"],
    ["delegate", "nobody", "x"],
    ["delegate", "scout", HOSTILE.slice(0, 200)],
    ["delegate", "scout", "x", "--wait", ...soon],
    ["delegate", "scout", "x", "--watch", ...soon],
    ["delegate", "scout", "--batch", batch],
    ["delegate", "scout", "--batch", batch, "--wait", ...soon],
    ["work", "--agent", "scout", "--once", "--", "cat"],
    ["redrive", failed.id, done.id],
    ["cancel", works.id, failed.id],
    ["delete", failed.id, asks.id],
  ];
  return { env: { PATH: process.env.PATH, ERRAND_URL: url, ERRAND_TOKEN: OPERATOR }, commands };
}

type World = Awaited<ReturnType<typeof world>>;

const COMMANDS = everyCommand(
  await buildProgram({ host: host(), end: () => undefined, unknownIds: new Map() }),
).map((command) => ({ words: pathOf(command).split(" ").slice(1), isGroup: command.commands.length > 0 }));
const HELP = COMMANDS.map(({ words }) => [...words, "--help"]);
/** Not called here, and where its output is looked at instead. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  serve: "test/serve/start-lines.test.ts, test/telemetry/log-text.test.ts",
  inbox: "test/cli/inbox, and below without a terminal",
  mcp: "no person reads it",
  "files orphans": "test/files/orphans.slow.test.ts",
};

test("every command of the program is called here, or is tested elsewhere", async () => {
  const { commands } = await world();
  const calls = [...commands.map((words) => words.join(" ")), ...Object.keys(ELSEWHERE)];
  const missing = COMMANDS.filter(
    ({ words, isGroup }) => !isGroup && !calls.some((call) => `${call} `.startsWith(`${words.join(" ")} `)),
  );
  expect(missing.map(({ words }) => words.join(" "))).toEqual([]);
});

/** What each command shows: on a terminal, or in pipes. */
async function shown(
  { env }: World,
  commands: World["commands"],
  columns?: number,
): Promise<[string, string][]> {
  const program = [process.execPath, PROGRAM, JSON.stringify(commands)] as const;
  const [file = "", ...args] =
    columns === undefined ? program : ["python3", "-c", ON_TERMINAL, String(columns), ...program];
  const child = spawn(file, args, { env, stdio: ["ignore", "pipe", "pipe"] });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (part: string) => {
      text += part;
    });
  }
  await once(child, "close");
  const parts = text.replaceAll("\r\n", "\n").split(/^#### (.*)\n/m);
  const all = parts.flatMap((name, at): [string, string][] =>
    at % 2 === 1 ? [[name, parts[at + 1] ?? ""]] : [],
  );
  expect(all.map(([name]) => name)).toEqual([...commands.map((command) => command.join(" ")), "end"]);
  return all;
}

/** What is shown in the end, without colors and without lines that were replaced. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: escapes of a terminal
const plain = (text: string): string => text.replace(/^.*\r\u001b\[2K/gm, "").replace(/\u001b\[\d+m/g, "");
/** Lines that are pasted, paths, and commands in quotes, stay whole; a reply is shown as it is. */
const isWhole = (line: string): boolean => /'errand |^export |^https?:|^\//.test(line);

test.each([80, 120])(
  "on a terminal of %d columns, no line is longer, and only colors are escapes",
  async (columns) => {
    const here = await world();
    const tooLong: unknown[] = [];
    for (const [command, text] of await shown(here, [...here.commands, ...HELP], columns)) {
      // The reply, after an empty line, keeps the agent's lines.
      const own = command.startsWith("get dlg") ? plain(text).split("\n\n")[0] : plain(text);
      const long = (own ?? "").split("\n").filter((line) => displayWidth(line) > columns && !isWhole(line));
      if (long.length > 0) tooLong.push([command, long[0]]);
      expect([command, plain(text)]).toEqual([command, expect.not.stringContaining(ESCAPE)]);
    }
    expect(tooLong).toEqual([]);
  },
);

test("without a terminal there is no escape", async () => {
  const here = await world();
  // A reply is written as it is.
  const commands = [...here.commands, ["inbox"]].filter(([name]) => name !== "get");
  for (const [command, text] of await shown(here, commands))
    expect([command, text.includes(ESCAPE)]).toEqual([command, false]);
});

test("with --json every line is JSON, also of an error", async () => {
  const here = await world();
  const commands = [...here.commands, ["inbox"]].map((command) => ["--json", ...command]);
  for (const [command, text] of await shown(here, commands)) {
    const lines = text.split("\n").filter((line) => line !== "");
    expect(() => lines.map((line) => JSON.parse(line)), `${command}\n${text}`).not.toThrow();
    expect([command, text.includes(ESCAPE)]).toEqual([command, false]);
  }
});
