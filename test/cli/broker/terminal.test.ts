/** Properties of every command's output: it fits a real terminal, has no escapes without one, and its JSON parses. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { displayWidth } from "../../../src/cli/show/display-width.ts";
import { client, OPERATOR, startBroker } from "../../support/broker.ts";

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

/** A broker with every kind of delegation, and with texts that are long, wide and hostile. */
async function world() {
  const { url } = await startBroker();
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
  const waits = (await api.delegate("scout", { task: HOSTILE, parent_id: works.id })).body;
  const commands = [
    ["list"],
    ["list", "--tree"],
    ["list", "--state", "working", "--target", "nobody"],
    ...[done.id, failed.id, asks.id, works.id, String(waits.id)].map((id) => ["get", id]),
    ["get", asks.id, "--history"],
    ["results"],
    ["logs", asks.id],
    ["watch", failed.id, "--after", "0"],
    ["agent", "list"],
    ["agent", "get", "scout"],
    ["agent", "get", "scuot"],
    ["stats"],
    ["status"],
    ["audit"],
    ["token", "list"],
    ["sessions", "list"],
    ["invite", "alice"],
    ["doctor"],
    ["message", asks.id, "x"],
    ["approve", done.id],
    ["cancel", done.id, failed.id],
    ["delegate", "nobody", "x"],
    ["delegate", "scout", "x"],
    ["get", waits.id, "--wait", "--timeout", "0.1"],
  ];
  return { env: { PATH: process.env.PATH, ERRAND_URL: url, ERRAND_TOKEN: OPERATOR }, commands };
}

type World = Awaited<ReturnType<typeof world>>;

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
/** Lines that are pasted, and commands in quotes, stay whole; a reply is shown as it is. */
const isWhole = (line: string): boolean => /'errand |^export |^https?:/.test(line);

test("on a terminal of 80 and of 120 columns, no line is longer, and only colors are escapes", async () => {
  const here = await world();
  const tooLong: unknown[] = [];
  for (const columns of [80, 120]) {
    for (const [command, text] of await shown(here, here.commands, columns)) {
      // The reply, after an empty line, is the agent's own.
      const own = command.startsWith("get dlg") ? plain(text).split("\n\n")[0] : plain(text);
      const long = (own ?? "").split("\n").filter((line) => displayWidth(line) > columns && !isWhole(line));
      if (long.length > 0) tooLong.push([columns, command, long[0]]);
      expect([command, own]).toEqual([command, expect.not.stringContaining(ESCAPE)]);
    }
  }
  expect(tooLong).toEqual([]);
});

test("without a terminal there is no escape, and with --json every line is JSON", async () => {
  const here = await world();
  const piped = here.commands.filter(([name]) => name !== "get");
  for (const [command, text] of await shown(here, piped))
    expect([command, text.includes(ESCAPE)]).toEqual([command, false]);
  // On a terminal, the inbox is a screen.
  const json = [...here.commands, ["inbox"]].filter(([name]) => name !== "approve");
  for (const [command, text] of await shown(
    here,
    json.map((command) => [...command, "--json"]),
  )) {
    const lines = text.split("\n").filter((line) => line !== "");
    expect(() => lines.map((line) => JSON.parse(line)), command).not.toThrow();
    expect([command, text.includes(ESCAPE)]).toEqual([command, false]);
  }
});
