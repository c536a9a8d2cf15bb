/**
 * A gateway on a Redis of its own, live objects for requests to name, and the check of an answer. Limit: a stream is
 * left after its first bytes, and a held request after half a second.
 */
import { Agent, request as httpRequest } from "node:http";
import { Redis } from "ioredis";
import { onTestFinished } from "vitest";
import { z } from "zod";
import { DiskStore } from "../../src/engine/files/disk-store.ts";
import { startGateway } from "../../src/gateway/gateway.ts";
import { ERRORS } from "../../src/schema/errors.ts";
import { problemSchema } from "../../src/schema/problem.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { requireValid } from "../support/a2a-schema/check.ts";
import { as, client, OPERATOR } from "../support/broker.ts";
import { tempFolder } from "../support/files.ts";
import { startOwnRedis } from "../support/own-redis.ts";
import type { Wire } from "./mutations.ts";
import type { ApiName } from "./requests.ts";

const HELD_MS = 500;
const MAX_BYTES = 65_536;

export interface Given {
  /** 0: no answer in time. */
  readonly status: number;
  readonly type: string;
  readonly text: string;
}

/**
 * Keys that a request may write besides its objects: presence, figures, outgoing calls, the reservation of an idempotency
 * key, and what an upload counts before it is refused.
 */
const BESIDE = /:(?:pollers:.*|gateways|seen|stats:.*|files:.*)$|hooks|:idempotency:/;

export async function openWorld() {
  const own = await startOwnRedis("everysec");
  const log: string[] = [];
  const settings = {
    redis: own.target,
    host: "127.0.0.1",
    port: 0,
    operatorToken: OPERATOR,
    shards: 1,
    retentionMs: 3_600_000,
    maxBodyBytes: 262_144,
    allowedOrigins: [],
    files: { store: new DiskStore(await tempFolder()), maxBytes: 65_536, principalBytes: 1_048_576 },
    log: createLog("error", (line) => log.push(line)),
  };
  // No client here answers an MCP ping.
  const gateway = await startGateway(settings, { mcpPingMs: 50, clock: { offset_ms: 0 }, sweepEveryMs: 0 });
  const url = `http://127.0.0.1:${gateway.port}`;
  const connections = new Agent({ keepAlive: true, maxSockets: 4 });
  const written: string[] = [];
  await own.redis.config("SET", "notify-keyspace-events", "KA");
  const watcher = new Redis({ path: own.target.socket, password: own.target.password });
  await watcher.psubscribe("__keyspace@0__:*");
  watcher.on("pmessage", (_pattern: string, channel: string, what: string) => {
    const key = channel.slice("__keyspace@0__:".length);
    if (!BESIDE.test(key) && what !== "expired") written.push(`${what} ${key}`);
  });
  onTestFinished(async () => {
    watcher.disconnect();
    connections.destroy();
    await gateway.close({ idleGrace: false });
  });

  const api = client(url);
  const { token } = await as(url, "agent:scout");
  const alice = await as(url, "caller:alice");
  const tokens = [OPERATOR, OPERATOR, token, alice.token];
  let alive = { id: "", lease: "", interrupt: "", session: "" };

  /** Creates new objects: earlier requests may have ended, paused or deleted the current ones. */
  async function renew(): Promise<void> {
    await api.call("POST", "/v1/agents/scout/resume");
    await api.agent("scout");
    const work = await api.delegate("scout", {}, undefined);
    const leased = await api.lease("scout", { wait_seconds: 0 });
    const lease = String(leased.body.leases?.[0]?.lease_id ?? "");
    const asked = await api.lease("scout", { wait_seconds: 0 });
    const other = String(asked.body.leases?.[0]?.lease_id ?? "");
    const raised = other === "" ? undefined : await api.interrupt(other, {});
    const session = await send({
      method: "POST",
      path: "/mcp",
      headers: { accept: "application/json, text/event-stream", "content-type": "application/json" },
      bytes: Buffer.from(
        JSON.stringify({
          jsonrpc: "2.0",
          id: 1,
          method: "initialize",
          params: {
            protocolVersion: "2025-11-25",
            capabilities: {},
            clientInfo: { name: "fuzz", version: "1" },
          },
        }),
      ),
    });
    alive = {
      id: String(leased.body.leases?.[0]?.delegation.id ?? work.body.id ?? ""),
      lease,
      interrupt: String(raised?.body.interrupt_id ?? "int_none"),
      session: session.session,
    };
  }

  const fill = (text: string): string =>
    text.replaceAll(/\{(id|lease|interrupt|session)\}/g, (_, name: string) =>
      name === "id"
        ? alive.id
        : name === "lease"
          ? alive.lease
          : name === "session"
            ? alive.session
            : alive.interrupt,
    );

  function send(wire: Wire, by = OPERATOR): Promise<Given & { session: string }> {
    const { method, path, headers, bytes } = wire;
    return new Promise((resolve, reject) => {
      const asked = httpRequest(
        `${url}/`,
        {
          method,
          path,
          agent: connections,
          headers: {
            authorization: `Bearer ${by}`,
            ...headers,
            ...(bytes !== undefined && { "content-length": String(bytes.length) }),
          },
        },
        (answer) => {
          const chunks: Buffer[] = [];
          let length = 0;
          const done = () => {
            clearTimeout(held);
            resolve({
              status: answer.statusCode ?? 0,
              type: String(answer.headers["content-type"] ?? ""),
              text: Buffer.concat(chunks).toString("utf8"),
              session: String(answer.headers["mcp-session-id"] ?? ""),
            });
          };
          answer.on("data", (chunk: Buffer) => {
            chunks.push(chunk);
            length += chunk.length;
            const streams = String(answer.headers["content-type"]).startsWith("text/event-stream");
            if (streams && length > 0 && !path.startsWith("/mcp")) {
              asked.destroy();
              done();
            }
          });
          answer.on("end", done);
          answer.on("error", done);
          answer.on("close", done);
        },
      );
      const held = setTimeout(() => {
        asked.destroy();
        resolve({ status: 0, type: "", text: "", session: "" });
      }, HELD_MS);
      asked.on("error", (error) => {
        clearTimeout(held);
        // The gateway closed the connection: the bytes were not an HTTP request.
        if ("code" in error && error.code === "ECONNRESET")
          return resolve({ status: -1, type: "", text: "", session: "" });
        reject(error);
      });
      asked.end(bytes);
    });
  }

  /** Keys that were written since the last call, and by which command. */
  async function changes(): Promise<string[]> {
    await watcher.ping();
    return written.splice(0);
  }

  await renew();
  await changes();
  return { url, log, tokens, renew, send, fill, changes, redis: own.redis, MAX_BYTES };
}
export type World = Awaited<ReturnType<typeof openWorld>>;

const json = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

const rpcError = z.looseObject({
  jsonrpc: z.literal("2.0"),
  error: z.looseObject({ code: z.int(), message: z.string().min(1) }),
});
const restError = z.looseObject({
  error: z.looseObject({
    code: z.int(),
    status: z.string(),
    message: z.string(),
    details: z.array(z.unknown()),
  }),
});
const toolError = z.looseObject({ result: z.looseObject({ isError: z.literal(true) }) });

/** What is wrong with an answer; null if it is right. */
export function fault(api: ApiName, { status, type, text }: Given): string | null {
  if (status === 0) return null;
  if (status === -1) return "the connection was cut";
  if (status >= 500) return `status ${status}`;
  if (type.startsWith("text/event-stream")) return null;
  const body = text === "" ? undefined : json(text);
  if (text !== "" && type.includes("json") && body === undefined) return "no JSON";
  if (status < 400) return api === "rpc" && rpcError.safeParse(body).success ? a2aFault(body) : null;
  const problem = problemSchema.safeParse(body).data;
  if (problem) {
    if (problem.status !== status || !Object.hasOwn(ERRORS, problem.code))
      return `problem ${problem.code} with ${status}`;
    return problem.recovery.length > 10 ? null : "no recovery";
  }
  if (api === "rest" || api === "ag-ui") return "no problem document";
  if (api === "mcp") return rpcError.safeParse(body).success ? null : "no error of its protocol";
  return a2aFault(body);
}

/** What is wrong with an error of A2A, which has one of three forms; null if it is right. */
function a2aFault(body: unknown): string | null {
  const [type, error] = rpcError.safeParse(body).success
    ? ["RpcError", z.looseObject({ error: z.unknown() }).parse(body).error]
    : [restError.safeParse(body).success ? "HttpError" : "RpcError", body];
  try {
    requireValid("1.0", type, error);
    return null;
  } catch (invalid) {
    return String(invalid);
  }
}

/** Whether the broker refused the request. */
export function isRefused({ status, text }: Given): boolean {
  if (status >= 400) return true;
  const body = json(text);
  return rpcError.safeParse(body).success || toolError.safeParse(body).success;
}

/** Whether a rate, a quota or a limit is the reason: such a refusal still extends the lease. */
export const isPassing = ({ status, text }: Given): boolean =>
  status === 429 || /"(?:rate_limited|quota_exceeded|limit_reached)"/.test(text);
