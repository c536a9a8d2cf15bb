#!/usr/bin/env node
/**
 * Runs clients of the official Python A2A SDKs against a broker of this build, because what our own client accepts,
 * another may not. The clients are in scripts/python-sdks/.
 */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { EXIT_USAGE, orExit, parseArguments, WrongArguments } from "./arguments.mjs";
import { callerOf, OPERATOR } from "./call-broker.mjs";
import { ROOT, say, step } from "./steps.mjs";

const VERSIONS = ["0.3.9", "1.1.0"];
const UNAVAILABLE = 69;
const STOP_MS = 10_000;
/** Nothing listens there, and nothing leaves the machine: the checks create push configs, but await no call. */
const PUSH_URL = "http://127.0.0.1:9/";

const HELP = `npm run prove -- python-sdks [options]

Starts a broker and an agent, and checks them with clients of the official Python A2A SDKs (a2a-sdk), over JSON-RPC and
HTTP+JSON, plain and streaming. The client 1.x also speaks 0.3. Prints a line for each check. Needs Python 3.10 or newer.

  --sdk VERSION         use this version; may be repeated (${VERSIONS.join(" and ")})
  --sdk VERSION=FOLDER  … from its sources: FOLDER contains the package a2a. Several folders, separated by "${delimiter}",
                        may have its dependencies, too; the rest must be installed for --python
  --python PROGRAM      the Python to use (python3)
  --help                print this help

Each version is installed with pip into a virtual environment in a temporary folder, which is removed at the end.

Exit code: 0 if all checks pass, 1 if one fails, 64 for a wrong option, ${UNAVAILABLE} if Python or an SDK is missing.
`;

const OPTIONS = {
  sdk: { type: "string", multiple: true, default: VERSIONS },
  python: { type: "string", default: "python3" },
};

/** Python or an SDK cannot be had; the message says why. */
class Unavailable extends Error {}

const folder = mkdtempSync(join(tmpdir(), "errand-python-sdks-"));
const children = new Set();

/** Resolves to the output; a failure becomes Unavailable with the last line that the program printed. */
async function output(command, args, failure, env = process.env) {
  try {
    return (await promisify(execFile)(command, args, { env })).stdout.trim();
  } catch (error) {
    const said = `${error.stdout ?? ""}\n${error.stderr ?? ""}`.trim() || error.message;
    throw new Unavailable(`${failure}: ${said.split("\n").at(-1)}`);
  }
}

/** Resolves to the Python that has the SDK, and its PYTHONPATH. */
async function prepare({ version, sources }, python) {
  if (sources !== undefined) {
    const path = sources
      .split(delimiter)
      .map((one) => resolve(one))
      .join(delimiter);
    const env = { ...process.env, PYTHONPATH: path };
    await output(python, ["-c", "import a2a.client"], `${version}: the sources cannot be used`, env);
    return { program: python, path };
  }
  const place = join(folder, `venv-${version}`);
  const program = join(place, "bin", "python");
  return step(`Installing a2a-sdk ${version}`, async () => {
    await output(python, ["-m", "venv", place], "No virtual environment can be created");
    const install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", `a2a-sdk==${version}`];
    const advice = `Use its sources: --sdk ${version}=FOLDER. pip says`;
    await output(program, install, `a2a-sdk ${version} cannot be installed. ${advice}`);
    return { program, path: "" };
  });
}

function start(command, args, stdio, env) {
  const { PATH, HOME, ERRAND_REDIS_BIN } = process.env;
  const own = { PATH, HOME, ...(ERRAND_REDIS_BIN && { ERRAND_REDIS_BIN }) };
  const child = spawn(command, args, { stdio, env: { ...own, ...env } });
  children.add(child);
  child.once("exit", () => children.delete(child));
  return child;
}

/** Resolves to the broker and its URL when it is ready. */
async function startBroker() {
  const main = join(ROOT, "dist/errand.js");
  const child = start(process.execPath, [main, "serve"], ["ignore", "ignore", "pipe"], {
    ERRAND_DATA_DIR: join(folder, "data"),
    ERRAND_PORT: "0",
    ERRAND_OPERATOR_TOKEN: OPERATOR,
    ERRAND_LOG_LEVEL: "error",
    ERRAND_CALLBACK_ALLOW: "127.0.0.1",
  });
  let said = "";
  const ready = new Promise((resolve, reject) => {
    child.stderr.setEncoding("utf8").on("data", (text) => {
      said += text;
      const [, url] = said.match(/errand is ready at (\S+)\n/) ?? [];
      if (url !== undefined) resolve(url);
    });
    child.once("close", () => reject(new Error(`The broker ended:\n${said}`)));
  });
  return { child, url: await ready, log: () => said };
}

/** Holds "wait" until it is canceled, and echoes any other text. */
async function work(task) {
  task.progress("at work");
  if (task.text !== "wait") return `echo: ${task.text}`;
  const { signal } = task;
  if (!signal.aborted) await once(signal, "abort");
  throw signal.reason;
}

/** Runs the clients one after the other; resolves to whether all checks passed. */
async function check(prepared) {
  const broker = await startBroker();
  const call = callerOf(broker.url);
  await call("PUT", "/v1/agents/echo", {});
  const { token } = await call("POST", "/v1/tokens", { principal: "caller:python" });
  const { Agent } = await import(pathToFileURL(join(ROOT, "dist/library/index.js")).href);
  // More than the tasks that the clients hold at a time, so that a canceled task which still ends delays none.
  const agent = new Agent({ agent: "echo", url: broker.url, token: OPERATOR, concurrency: 8 }, work);
  const working = agent.run();
  const results = [];
  for (const { version, program, path } of prepared) {
    const client = version.startsWith("0.") ? "client_0_3.py" : "client_1.py";
    const child = start(program, [join(ROOT, "scripts", "python-sdks", client)], "inherit", {
      PYTHONPATH: path,
      PYTHONDONTWRITEBYTECODE: "1",
      ERRAND_AGENT_URL: `${broker.url}/a2a/echo/`,
      ERRAND_TOKEN: token,
      ERRAND_PUSH_URL: PUSH_URL,
      ERRAND_SDK_LABEL: version,
    });
    const [code] = await once(child, "exit");
    if (code !== 0) say(`a2a-sdk ${version}: FAILED`);
    results.push(code === 0);
  }
  await agent.stop();
  await working;
  broker.child.kill("SIGTERM");
  await Promise.race([once(broker.child, "exit"), sleep(STOP_MS)]);
  const passed = !results.includes(false);
  if (!passed && broker.log() !== "") say(`\nThe broker said:\n${broker.log()}`);
  return passed;
}

async function main(sdks, python) {
  const isNew = "import sys; sys.version_info < (3, 10) and sys.exit('Python 3.10 or newer is needed')";
  await output(python, ["-c", isNew], `${python} cannot be used`);
  const prepared = [];
  const missing = [];
  for (const sdk of sdks) {
    try {
      prepared.push({ ...sdk, ...(await prepare(sdk, python)) });
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      missing.push(error.message);
    }
  }
  const passed = prepared.length === 0 || (await check(prepared));
  for (const message of missing) say(message);
  if (!passed) return 1;
  return missing.length > 0 ? UNAVAILABLE : 0;
}

/** `VERSION` or `VERSION=FOLDER`; the version becomes a part of file names and of pip's arguments. */
function sdkOf(text) {
  const [, version, sources] = /^(\d[\w.]*)(?:=(.+))?$/.exec(text) ?? [];
  if (version === undefined) throw new WrongArguments(`--sdk ${text}: write VERSION or VERSION=FOLDER.`);
  return { version, sources };
}

/** At each end, also by a signal; the broker's Redis ends with the broker. */
process.once("exit", () => {
  for (const child of children) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"])
  process.once(signal, () => process.exit(128 + constants.signals[signal]));

let code = 1;
try {
  const { sdk, python } = orExit(HELP, () => parseArguments(process.argv.slice(2), OPTIONS)).values;
  code = await main(sdk.map(sdkOf), python);
} catch (error) {
  if (error instanceof Unavailable) code = UNAVAILABLE;
  if (error instanceof WrongArguments) code = EXIT_USAGE;
  say(error.message);
}
process.exit(code);
