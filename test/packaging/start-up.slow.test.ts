/** The start of the built program: what it checks, prints and writes. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { request } from "../support/broker.ts";
import { errand, freshDir, serveIn } from "../support/program.ts";
import { startServer } from "../support/redis-pair.ts";
import { until } from "../support/until.ts";
import { plainEnv } from "./consumer.ts";

const modeOf = (path: string): number => statSync(path).mode & 0o777;

test("with an external Redis the data directory is private, too", async () => {
  const cwd = freshDir();
  const dataDir = join(cwd, ".errand");
  mkdirSync(dataDir);
  chmodSync(dataDir, 0o755);
  const { socket } = await startServer();
  await serveIn(cwd, { ERRAND_REDIS_URL: `unix:${socket}` });
  expect(modeOf(dataDir).toString(8)).toBe("700");
  expect(modeOf(join(dataDir, "operator-token")).toString(8)).toBe("600");
}, 240_000);

test("on a terminal: a link that signs in once, as the operator, and lines to paste that work", async () => {
  const cwd = freshDir();
  const main = fileURLToPath(new URL("../../dist/errand.js", import.meta.url));
  const clean = Object.entries(process.env).filter(([name]) => !name.startsWith("ERRAND_"));
  const spawning = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)";
  const child = spawn("python3", ["-c", spawning, process.execPath, main, "serve"], {
    cwd,
    env: { ...Object.fromEntries(clean), ERRAND_PORT: "0" },
    stdio: "pipe",
  });
  const exited = once(child, "exit");
  let screen = "";
  child.stdout.on("data", (bytes: Buffer) => {
    screen += bytes.toString();
  });
  onTestFinished(async () => {
    // Ctrl-C, as at a terminal.
    child.stdin.write("\u0003");
    await exited;
  });
  const link = await until(() => /(http:\S+)\/#code=(errand_code_\w+)\r?\n/.exec(screen), {
    what: "the link",
  });
  const [, url = "", code] = link ?? [];
  expect(screen).toContain(`errand is ready at ${url}`);
  expect(screen).toMatch(/\d\d:\d\d:\d\d\S* \S*info \S* Redis is ready /);
  expect(screen).not.toContain('{"level"');
  const signIn = () => request(url, "POST", "/v1/sessions", { token: null, body: { code } });
  const signedIn = await signIn();
  expect(signedIn).toMatchObject({ status: 201, body: { principal: "operator", token_id: null } });
  expect((await request(url, "GET", "/v1/tokens", { token: signedIn.body.token })).status).toBe(200);
  expect((await signIn()).status).toBe(401);

  // The lines to paste work in that directory.
  const [, worker = "", delegate = "", watch = ""] =
    (await until(() => /\r\n {2}(.* work .*)\r\n {2}(.* delegate .*)\r\n {2}(.* watch)\r\n/.exec(screen))) ??
    [];
  expect(watch).toBe(`${fileURLToPath(new URL("../../errand", import.meta.url))} watch`);
  const paste = (line: string) =>
    spawn("sh", ["-c", `exec ${line}`], { cwd, env: plainEnv(), stdio: "pipe" });
  const working = paste(worker);
  const stopped = once(working, "exit");
  const agent = () => request(url, "GET", "/v1/agents/scout", { token: signedIn.body.token });
  await until(async () => (await agent()).status === 200);
  let answer = "";
  const delegating = paste(delegate);
  delegating.stdout.on("data", (bytes: Buffer) => {
    answer += bytes.toString();
  });
  await once(delegating, "exit");
  expect(answer.trim()).toBe("3");

  const stream = await fetch(`${url}/v1/events`, {
    headers: { authorization: `Bearer ${signedIn.body.token}`, accept: "text/event-stream" },
  });
  child.stdin.write("\u0003");
  await exited;
  await stream.body?.cancel().catch(() => undefined);
  expect(screen).toMatch(
    /errand is stopping \(SIGINT\); first it closes (?:one|\d) connections? of agents and watchers\. That takes at most ten seconds/,
  );
  working.kill("SIGTERM");
  await stopped;
}, 240_000);

test("too many connections do not end the broker: it serves again when some are closed", async () => {
  const cwd = freshDir();
  const { socket } = await startServer();
  const main = fileURLToPath(new URL("../../dist/errand.js", import.meta.url));
  const clean = Object.entries(process.env).filter(([name]) => !name.startsWith("ERRAND_"));
  const child = spawn("sh", ["-c", 'ulimit -n 500; exec "$0" "$@"', process.execPath, main, "serve"], {
    cwd,
    env: {
      ...Object.fromEntries(clean),
      ERRAND_PORT: "0",
      ERRAND_REDIS_URL: `unix:${socket}`,
    },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let stderr = "";
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
  });
  const exited = once(child, "exit");
  onTestFinished(async () => {
    child.kill("SIGTERM");
    await exited;
  });
  const url = await until(() => /ready at (\S+)/.exec(stderr)?.[1] ?? child.exitCode !== null);
  if (typeof url !== "string") throw new Error(`it did not start: ${stderr}`);
  const port = Number(new URL(url).port);
  const sockets: Socket[] = Array.from({ length: 700 }, () => {
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => {});
    return socket;
  });
  const open = () => sockets.filter(({ destroyed }) => !destroyed).length;
  // Connections beyond the limit are closed at once.
  await until(() => open() < 500);
  for (const socket of sockets) socket.destroy();
  await until(async () => (await request(url, "GET", "/healthz", { token: null })).status === 200);
  expect(child.exitCode).toBeNull();
}, 240_000);

test("an unreachable Redis is named, with the reason", async () => {
  const run = errand(freshDir(), ["serve", "--port", "0"], {
    ERRAND_REDIS_URL: "redis://127.0.0.1:1",
    // Set by Kubernetes for a Service named errand, and by `errand work`: neither stops the start.
    ERRAND_PORT: "tcp://10.96.10.20:4180",
    ERRAND_SERVICE_HOST: "10.96.10.20",
    ERRAND_ARTIFACTS_DIR: "/tmp/artifacts",
  });
  expect(await run.ended()).toBe(75);
  expect(run.stderr()).toContain("ECONNREFUSED 127.0.0.1:1");
}, 240_000);

test("the start prints the variables that the CLI needs in another shell, and they are sufficient", async () => {
  const { socket } = await startServer();
  const redis = { ERRAND_REDIS_URL: `unix:${socket}` };
  const byDefault = await serveIn(freshDir(), redis);
  await until(() => byDefault.stderr().includes("the CLI finds this broker and its token in "));

  const dataDir = join(freshDir(), "data");
  const named = errand(freshDir(), ["serve"], { ...redis, ERRAND_PORT: "0", ERRAND_DATA_DIR: dataDir });
  const needed = () => /to use the CLI in another shell, set (\w+)=(\S+)\n/.exec(named.stderr());
  const [, name = "", value = ""] = await until(needed, { what: "the start" });
  expect([name, value]).toEqual(["ERRAND_DATA_DIR", dataDir]);
  const list = errand(freshDir(), ["agent", "list"], { [name]: value });
  expect([await list.ended(), list.stderr()]).toEqual([0, "errand: no agents yet.\n"]);

  const token = { ERRAND_OPERATOR_TOKEN: "operator-token-for-tests" };
  const own = errand(freshDir(), ["serve"], { ...redis, ...token, ERRAND_PORT: "0" });
  await until(() => own.stderr().includes("to use the CLI in another shell, set ERRAND_TOKEN\n"), {
    what: "the start",
  });
  expect(own.stderr()).not.toContain("operator-token");
}, 240_000);

test("an unusable data directory or server binary is a configuration problem, with a next step", async () => {
  const cwd = freshDir();
  writeFileSync(join(cwd, "file"), "");
  symlinkSync(join(cwd, "missing"), join(cwd, "dangling"));
  const { socket } = await startServer();
  const external = { ERRAND_REDIS_URL: `unix:${socket}` };
  const choose = "choose another with --data-dir or ERRAND_DATA_DIR";
  const cases: [string, Record<string, string>, string][] = [
    ["file", {}, `${join(cwd, "file")} is not a folder`],
    ["file", external, `${join(cwd, "file")} is not a folder`],
    ["file/deeper", {}, `${join(cwd, "file")} is not a folder`],
    ["dangling", {}, `${join(cwd, "dangling")} is a symbolic link to a folder that does not exist`],
    // Node's own recursive mkdir never returns for this one.
    ["/proc/foo", {}, "/proc/foo cannot be created (ENOENT)"],
  ];
  for (const [dataDir, env, problem] of cases) {
    const run = errand(cwd, ["serve", "--data-dir", dataDir], { ERRAND_PORT: "0", ...env });
    expect([await run.ended(), run.stderr()]).toEqual([
      78,
      `errand: the data directory ${problem}; ${choose}\n`,
    ]);
  }
  const binary = errand(cwd, ["serve"], { ERRAND_PORT: "0", ERRAND_REDIS_BIN: "/nowhere/redis" });
  expect(await binary.ended()).toBe(78);
  expect(binary.stderr()).toMatch(/^errand: ERRAND_REDIS_BIN: \/nowhere\/redis: .*Install redis-server/);
}, 240_000);

test.skipIf(process.getuid?.() === 0)(
  "a data directory that is not writable is named",
  async () => {
    const cwd = freshDir();
    mkdirSync(join(cwd, "data"), { mode: 0o500 });
    const run = errand(cwd, ["serve", "--data-dir", "data"], { ERRAND_PORT: "0" });
    expect(await run.ended()).toBe(78);
    expect(run.stderr()).toContain(`the data directory ${join(cwd, "data")} is not writable`);
  },
  30_000,
);
