/**
 * The delegator, and the receiver of callbacks, in a browser: bundled from the package as an application would, then
 * run with a real broker, in Chromium if there is one, and in a context that has only the web's globals. Needs a
 * build.
 */
import { existsSync, mkdirSync, symlinkSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createContext, runInContext } from "node:vm";
import { build } from "esbuild";
import { Webhook } from "standardwebhooks";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { Agent } from "../../src/index.ts";
import { as, startBroker } from "../support/broker.ts";
import { SKIP, sharedBrowser } from "../support/browser.ts";
import { freshDir } from "../support/program.ts";
import { eventLike } from "./stub-broker.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** An application of two lines, and the function of its page: a global, so that both environments can call it. */
const APPLICATION = `
import { Delegator, textOf } from "errand-broker";
globalThis.delegating = async (connection) => {
  const delegator = new Delegator(connection);
  const { id } = await delegator.delegate({ target: "scout", task: "two words" });
  const types = [];
  for await (const event of delegator.watch(id, { after: "0" })) types.push(event.type);
  const { reply } = await delegator.wait(id, { timeoutSeconds: 50 });
  const inbox = [];
  for await (const result of delegator.results({ follow: false })) inbox.push(result.delegation.id);
  const refusal = await delegator.cancel(id).catch((error) => error.code);
  return { types, text: textOf(reply), isInInbox: inbox.includes(id), refusal };
};
globalThis.failing = (connection) =>
  new Delegator(connection).get("dlg_0_01hzzzzzzzzzzzzzzzzzzzzzzz").catch(({ code, recovery }) => ({ code, recovery }));
`;

const DONE = {
  types: ["DELEGATION_SENT", "DELEGATION_STATUS", "DELEGATION_COMPLETE"],
  text: "2",
  isInInbox: true,
  refusal: "already_finished",
};

const RECEIVER = `
import { verifyCallback } from "errand-broker";
globalThis.receiving = (body, headers, secrets) => {
  try {
    return verifyCallback(body, headers, secrets).type;
  } catch (error) {
    return error.code;
  }
};
`;

async function bundle(contents = APPLICATION) {
  const folder = freshDir();
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(ROOT, join(folder, "node_modules", "errand-broker"));
  const { outputFiles, metafile } = await build({
    stdin: { contents, resolveDir: folder },
    bundle: true,
    platform: "browser",
    format: "iife",
    target: "es2022",
    minify: true,
    write: false,
    metafile: true,
    logLevel: "silent",
  });
  return { script: outputFiles[0]?.text ?? "", metafile };
}

/** A broker whose agent scout counts words, and a token for the page. */
async function setup(allowedOrigins: readonly string[]) {
  const { url } = await startBroker({ allowedOrigins: [...allowedOrigins] });
  const scout = await as(url, "agent:scout");
  await scout.agent("scout");
  const { token } = await as(url, "caller:page");
  const agent = new Agent(
    { url, token: scout.token, agent: "scout" },
    ({ text }) => `${text.split(" ").length}`,
  );
  void agent.run();
  onTestFinished(() => agent.stop());
  return { url, token };
}

beforeAll(() => {
  if (!existsSync(join(ROOT, "dist/library/index.js")))
    throw new Error("dist is missing: run 'npm run build'");
});

test("the bundle contains nothing of Node, and leaves out what the page does not use", async () => {
  const { script, metafile } = await bundle();
  const [output] = Object.values(metafile.outputs);
  expect(output?.imports).toEqual([]);
  expect(script).not.toContain("node:");
  expect(script).toContain("/v1/delegations");
  // Of the agent, the operator and the receiver of callbacks.
  const others = ["drainSeconds", "/heartbeat", "/v1/tokens", "webhook-signature"];
  expect(others.filter((one) => script.includes(one))).toEqual([]);
  expect(script.length).toBeLessThan(210_000);
});

test("the receiver of callbacks is bundled alone, and needs only the web's globals", async () => {
  const { script, metafile } = await bundle(RECEIVER);
  const [output] = Object.values(metafile.outputs);
  expect(output?.imports).toEqual([]);
  expect(script).toContain("webhook-signature");
  const others = ["drainSeconds", "/v1/leases", "/v1/delegations"];
  expect(others.filter((one) => script.includes(one))).toEqual([]);
  const { TextDecoder, TextEncoder, Headers } = globalThis;
  const web = createContext({ TextDecoder, TextEncoder, Headers });
  runInContext(script, web);
  const secret = `whsec_${Buffer.alloc(32, 1).toString("base64")}`;
  const body = JSON.stringify(eventLike(3, "DELEGATION_COMPLETE"));
  const headers = {
    "webhook-id": "evt_1",
    "webhook-timestamp": String(Math.floor(Date.now() / 1000)),
    "webhook-signature": new Webhook(secret).sign("evt_1", new Date(), body),
  };
  const receiving = (said: string) =>
    runInContext(`receiving(...${JSON.stringify([said, headers, [secret]])})`, web);
  expect([receiving(body), receiving(`${body} `)]).toEqual(["DELEGATION_COMPLETE", "forged"]);
});

test("the delegator needs only the web's globals", async () => {
  const { script } = await bundle();
  const { url, token } = await setup([]);
  const { AbortController, DOMException, Headers, Response, TextDecoder, TextEncoder, URL } = globalThis;
  const { clearTimeout, crypto, fetch, performance, setTimeout } = globalThis;
  const web = createContext({
    ...{ AbortController, DOMException, Headers, Response, TextDecoder, TextEncoder, URL },
    ...{ clearTimeout, crypto, fetch, performance, setTimeout },
  });
  runInContext(script, web);
  const connection = JSON.stringify({ url, token });
  expect(await runInContext(`delegating(${connection})`, web)).toEqual(DONE);
  expect(runInContext("typeof process", web)).toBe("undefined");
});

describe.skipIf(SKIP)("in Chromium, on a page of another origin and without TLS", () => {
  /** Serves one empty page with the script, under any name that ends in `.test`. */
  async function openPage(script: string) {
    const server = createServer((request, response) => {
      const isScript = request.url === "/app.js";
      response.setHeader("content-type", isScript ? "text/javascript" : "text/html");
      response.end(isScript ? script : "<!doctype html><script src=/app.js></script>");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = portOf(server.address());
    const context = await (await sharedBrowser()).newContext();
    onTestFinished(async () => {
      await context.close();
      server.closeAllConnections();
      server.close();
    });
    const open = async (host: string) => {
      const page = await context.newPage();
      await page.goto(`http://${host}:${port}/`);
      return (call: string) => page.evaluate(call);
    };
    return { open, originOf: (host: string) => `http://${host}:${port}` };
  }

  test("the delegator delegates, watches, waits, collects results and gets refusals as in Node", async () => {
    const { script } = await bundle();
    const { open, originOf } = await openPage(script);
    const connection = await setup([originOf("ops.test")]);
    const run = await open("ops.test");
    expect(await run("isSecureContext")).toBe(false);
    expect(await run(`delegating(${JSON.stringify(connection)})`)).toEqual(DONE);
  }, 120_000);

  test("from an origin that is not allowed, the error names the setting", async () => {
    const { script } = await bundle();
    const { open, originOf } = await openPage(script);
    const connection = await setup([originOf("ops.test")]);
    const run = await open("other.test");
    expect(await run(`failing(${JSON.stringify(connection)})`)).toEqual({
      code: "unreachable",
      recovery: expect.stringContaining("ERRAND_ALLOWED_ORIGINS"),
    });
  }, 120_000);
});

function portOf(address: AddressInfo | string | null): AddressInfo {
  if (address === null || typeof address === "string") throw new Error("the page's server has no port");
  return address;
}
