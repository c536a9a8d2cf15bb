/**
 * Runs the proxies of deploy/ that this machine has (nginx, HAProxy, Caddy) in front of a broker, and checks what a proxy
 * may break: that work arrives at a parked poll, that a poll ends when its client leaves, and that events are not held.
 *
 * Only addresses, ports and certificates differ from the files. Needs openssl.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { request as requestHttps } from "node:https";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { checkNames, orExit, parseArguments } from "./arguments.mjs";
import { callerOf, OPERATOR } from "./call-broker.mjs";

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const HOST = "errand.example.org";
/** Longer than any proxy that works needs, on a busy machine; shorter than the polls here. */
const SOON_MS = 10_000;
const POLL_SECONDS = 40;

const NAMES = ["nginx", "haproxy", "caddy"];
const HELP = `npm run prove -- proxies [options]

  --only NAME  only this proxy: nginx, HAProxy or Caddy
  --long       also hold a poll for 60 s
`;
const { values } = orExit(HELP, () => {
  const parsed = parseArguments(process.argv.slice(2), {
    long: { type: "boolean", default: false },
    only: { type: "string" },
  });
  const { only } = parsed.values;
  if (only !== undefined) checkNames("proxy", [only.toLowerCase()], NAMES);
  return parsed;
});
const folder = mkdtempSync(join(tmpdir(), "errand-proxies-"));
const inFolder = (name) => join(folder, name);
const children = new Set();
/** What the programs print, shown after a failure. */
let log = "";

/** Each changes the file of deploy/ by exact replacements, so that a changed file is noticed. */
const PROXIES = [
  {
    name: "nginx",
    file: "nginx.conf",
    program: "nginx",
    version: ["-v"],
    config: (text, port, broker) =>
      [
        `daemon off; pid ${inFolder("nginx.pid")}; error_log stderr crit; worker_processes 1; events {}`,
        `http { access_log off; ${["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
          .map((one) => `${one}_temp_path ${inFolder(`nginx-${one}`)};`)
          .join(" ")}`,
        replaced(text, {
          "127.0.0.1:4180": broker,
          "listen 443 ssl": `listen 127.0.0.1:${port} ssl`,
          "/etc/ssl/errand.pem": inFolder("errand.pem"),
          "/etc/ssl/errand.key": inFolder("errand.key"),
        }),
        "}",
      ].join("\n"),
    args: (file) => ["-e", "stderr", "-p", folder, "-c", file],
  },
  {
    name: "HAProxy",
    file: "haproxy.cfg",
    program: "haproxy",
    version: ["-v"],
    config: (text, port, broker) =>
      replaced(text, {
        "127.0.0.1:4180": broker,
        "bind :443": `bind 127.0.0.1:${port}`,
        "/etc/ssl/errand-with-key.pem": inFolder("errand-with-key.pem"),
      }),
    args: (file) => ["-db", "-q", "-f", file],
    http2: true,
  },
  {
    name: "Caddy",
    file: "Caddyfile",
    program: "caddy",
    version: ["version"],
    config: (text, port, broker) =>
      [
        "{\n  admin off\n  auto_https disable_redirects\n  log {\n    level ERROR\n  }\n}",
        replaced(text, {
          "127.0.0.1:4180": broker,
          [`${HOST} {`]: `https://${HOST}:${port} {\n  bind 127.0.0.1\n  tls ${inFolder("errand.pem")} ${inFolder("errand.key")}`,
        }),
      ].join("\n"),
    args: (file) => ["run", "--adapter", "caddyfile", "--config", file],
    http2: true,
  },
];

function replaced(text, changes) {
  return Object.entries(changes).reduce((now, [from, to]) => {
    if (now.split(from).length !== 2) throw new Error(`The file of deploy/ has "${from}" not exactly once.`);
    return now.replace(from, () => to);
  }, text);
}

function find(program) {
  const folders = [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin", "/usr/local/sbin"];
  return folders.map((one) => join(one, program)).find((path) => existsSync(path));
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  return port;
}

function start(command, args, env = {}) {
  const { PATH, HOME, ERRAND_REDIS_BIN } = process.env;
  const own = {
    PATH,
    HOME,
    XDG_DATA_HOME: folder,
    XDG_CONFIG_HOME: folder,
    ...(ERRAND_REDIS_BIN && { ERRAND_REDIS_BIN }),
  };
  const options = { stdio: ["ignore", "ignore", "pipe"], env: { ...own, ...env } };
  const child = spawn(command, args, options);
  children.add(child);
  child.stderr.setEncoding("utf8").on("data", (chunk) => (log += chunk));
  child.once("exit", () => children.delete(child));
  return child;
}

async function stop(child) {
  if (child.exitCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  await Promise.race([ended, sleep(SOON_MS)]);
}

/** Resolves to the milliseconds until the condition holds, or throws. */
async function until(what, holds, child, withinMs = SOON_MS) {
  const began = performance.now();
  for (;;) {
    if (await holds()) return performance.now() - began;
    if (child && child.exitCode !== null)
      throw new Error(`${what}: the process ended with ${child.exitCode}`);
    if (performance.now() - began > withinMs) throw new Error(`${what}: not within ${withinMs / 1000} s`);
    await sleep(20);
  }
}

const isAnswered = (promise) =>
  promise.then(
    () => true,
    () => false,
  );

/** A client of its own connection for each request, which `leave` closes. */
function http1(port) {
  return (method, path, body) => {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const headers = { host: HOST, authorization: `Bearer ${OPERATOR}`, ...contentOf(path, text) };
    const request = requestHttps({
      ...{ host: "127.0.0.1", port, servername: HOST, rejectUnauthorized: false, agent: false },
      ...{ method, path, headers },
    });
    request.end(text);
    const response = once(request, "response").then(([stream]) => ({ status: stream.statusCode, stream }));
    return { response, leave: () => request.destroy() };
  };
}

/** All requests share a connection, so a client that leaves resets its stream. */
function http2(port) {
  const session = connectHttp2(`https://127.0.0.1:${port}`, { servername: HOST, rejectUnauthorized: false });
  session.on("error", () => {});
  session.unref();
  return (method, path, body) => {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const headers = { authorization: `Bearer ${OPERATOR}`, ...contentOf(path, text) };
    const stream = session.request({ ":method": method, ":path": path, ":authority": HOST, ...headers });
    stream.end(text);
    const response = once(stream, "response").then(([head]) => ({ status: head[":status"], stream }));
    return { response, leave: () => stream.close(8) };
  };
}

function contentOf(path, text) {
  return {
    accept: path.includes("/events") ? "text/event-stream" : "application/json",
    ...(text !== undefined && {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(text),
    }),
  };
}

async function jsonOf({ response }) {
  const { status, stream } = await response;
  let text = "";
  stream.setEncoding("utf8");
  for await (const chunk of stream) text += chunk;
  if (status !== 200) throw new Error(`status ${status}: ${text.slice(0, 200)}`);
  return JSON.parse(text);
}

let agents = 0;

/** Each check returns what the table shows, or throws. `call` calls the broker directly, `send` through the proxy. */
function checksOf(call, send, metric) {
  const newAgent = async () => {
    agents += 1;
    const agent = `agent-${agents}`;
    await call("PUT", `/v1/agents/${agent}`, {});
    return agent;
  };
  const pollers = async (agent) => (await call("GET", `/v1/agents/${agent}`)).presence.pollers;
  const poll = (agent, wait_seconds) => send("POST", `/v1/agents/${agent}/leases`, { wait_seconds });
  const park = async (agent, wait = POLL_SECONDS) => {
    const parked = poll(agent, wait);
    parked.response.catch(() => {});
    await until("the poll is parked", async () => (await pollers(agent)) === 1);
    return parked;
  };
  const delegate = (target) => call("POST", "/v1/delegations", { target, task: "look" });
  const streams = () => metric("errand_event_streams");
  return {
    "work arrives": async () => {
      const agent = await newAgent();
      const parked = await park(agent);
      const began = performance.now();
      const { id } = await delegate(agent);
      const { leases } = await jsonOf(parked);
      if (leases[0]?.delegation.id !== id) throw new Error("the parked poll did not get the work");
      return `${Math.round(performance.now() - began)} ms`;
    },
    "abandoned poll ends": async () => {
      const agent = await newAgent();
      const { leave } = await park(agent);
      leave();
      const ms = await until("the abandoned poll ends", async () => (await pollers(agent)) === 0);
      await delegate(agent);
      const { leases } = await jsonOf(poll(agent, 5));
      if (leases[0]?.attempt !== 1)
        throw new Error("the next poll did not get the work at its first attempt");
      return `${Math.round(ms)} ms`;
    },
    "event is flushed": async () => {
      const agent = await newAgent();
      const { response, leave } = send("GET", "/v1/events");
      const { status, stream } = await response;
      if (status !== 200) throw new Error(`status ${status}`);
      let text = "";
      stream.setEncoding("utf8");
      stream.on("data", (chunk) => (text += chunk)).on("error", () => {});
      const began = performance.now();
      const { id } = await delegate(agent);
      await until("the event arrives", () => text.includes(id));
      const ms = performance.now() - began;
      leave();
      return `${Math.round(ms)} ms`;
    },
    "closed stream ends": async () => {
      await until("no stream is open", async () => (await streams()) === 0);
      const { response, leave } = send("GET", "/v1/events");
      const { stream } = await response;
      stream.on("error", () => {}).resume();
      await until("the stream is open", async () => (await streams()) === 1);
      leave();
      const ms = await until("the closed stream ends", async () => (await streams()) === 0);
      return `${Math.round(ms)} ms`;
    },
    ...(values.long && {
      "poll of 60 s": async () => {
        const { leases } = await jsonOf(poll(await newAgent(), 60));
        if (leases.length !== 0) throw new Error("a poll of an idle agent got work");
        return "held";
      },
    }),
  };
}

function print(rows) {
  const widths = rows[0].map((_, at) => Math.max(...rows.map((row) => row[at].length)));
  for (const row of rows)
    console.log(
      row
        .map((cell, at) => cell.padEnd(widths[at]))
        .join("  ")
        .trimEnd(),
    );
}

async function main() {
  const subject = ["-subj", `/CN=${HOST}`, "-addext", `subjectAltName=DNS:${HOST}`, "-days", "2", "-nodes"];
  const files = ["-keyout", inFolder("errand.key"), "-out", inFolder("errand.pem")];
  execFileSync("openssl", ["req", "-x509", "-newkey", "rsa:2048", ...subject, ...files], { stdio: "ignore" });
  const [certificate, key] = ["errand.pem", "errand.key"].map((name) => readFileSync(inFolder(name), "utf8"));
  writeFileSync(inFolder("errand-with-key.pem"), certificate + key);

  const brokerPort = await freePort();
  const broker = `127.0.0.1:${brokerPort}`;
  const gateway = start(process.execPath, [join(ROOT, "dist/errand.js"), "serve"], {
    ERRAND_DATA_DIR: inFolder("data"),
    ERRAND_PORT: String(brokerPort),
    ERRAND_PUBLIC_URL: `https://${HOST}`,
    ERRAND_OPERATOR_TOKEN: OPERATOR,
    ERRAND_LOG_LEVEL: "error",
  });
  const isReady = () => fetch(`http://${broker}/readyz`).then((response) => response.ok);
  await until("the broker is ready", () => isReady().catch(() => false), gateway, 60_000);
  const call = callerOf(`http://${broker}`);
  const metric = async (name) => {
    const headers = { authorization: `Bearer ${OPERATOR}` };
    const text = await (await fetch(`http://${broker}/metrics`, { headers })).text();
    const lines = text.split("\n").filter((line) => line.startsWith(name));
    return lines.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
  };

  const rows = [["proxy", "client", ...Object.keys(checksOf(call))]];
  const problems = [];
  for (const proxy of PROXIES) {
    if (values.only !== undefined && values.only.toLowerCase() !== proxy.name.toLowerCase()) continue;
    const program = find(proxy.program);
    if (program === undefined) {
      console.log(`${proxy.name} is not installed; it is skipped.`);
      continue;
    }
    const port = await freePort();
    const text = readFileSync(join(ROOT, "deploy", proxy.file), "utf8");
    const file = inFolder(proxy.file);
    writeFileSync(file, proxy.config(text, port, broker));
    const child = start(program, proxy.args(file));
    const ready = () => isAnswered(jsonOf(http1(port)("GET", "/readyz")));
    await until(`${proxy.name} is ready`, ready, child, 60_000);
    for (const [version, client] of [["HTTP/1.1", http1], ...(proxy.http2 ? [["HTTP/2", http2]] : [])]) {
      const row = [proxy.name, version];
      for (const [what, check] of Object.entries(checksOf(call, client(port), metric))) {
        try {
          row.push(await check());
        } catch (error) {
          row.push("FAILED");
          problems.push(`${proxy.name}, ${version}, ${what}: ${error.message}`);
        }
      }
      rows.push(row);
    }
    await stop(child);
  }
  if (rows.length === 1) problems.push("None of the proxies is installed, so nothing was checked.");
  print(rows);
  for (const problem of problems) console.error(problem);
  await stop(gateway);
  if (problems.length > 0) console.error(`\n${log}`);
  return problems.length === 0 ? 0 : 1;
}

let code = 1;
try {
  code = await main();
} catch (error) {
  console.error(`${error.message}\n\n${log}`);
} finally {
  for (const child of children) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}
process.exit(code);
