/**
 * The HTTP door: routes from the tables, a principal for each request, errors as problem+json. Limit: it has
 * no rules; it parses, calls one verb, and renders.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { Server as NetServer, type Socket } from "node:net";
import { type HttpBindings, serve } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { type Context, Hono } from "hono";
import type { Broker } from "../engine/context.ts";
import { randomId } from "../redis/shards.ts";
import { ErrandError } from "../schema/errors.ts";
import { a2aDoor } from "./a2a/door.ts";
import type { Signer } from "./a2a/signing.ts";
import { leaseRoutes } from "./agents/leases.ts";
import { replyRoutes } from "./agents/replies.ts";
import { Answer } from "./answer.ts";
import { parseBody, readBody } from "./body.ts";
import { Call } from "./call.ts";
import { docsPage } from "./docs-page.ts";
import type { Mount } from "./exchange.ts";
import { createMcpDoor, MCP_METHODS, MCP_PATH } from "./mcp/door.ts";
import { errorResponse } from "./mcp/errors.ts";
import { API_INFO, openapi } from "./openapi.ts";
import type { Document } from "./openapi-types.ts";
import { corsHeaders, originGuard, PREFLIGHT_HEADERS } from "./origin.ts";
import { problemResponse, toErrandError } from "./problem.ts";
import { agentRoutes } from "./rest/agents.ts";
import { batchRoutes } from "./rest/batch.ts";
import { controlRoutes } from "./rest/control.ts";
import { delegationRoutes } from "./rest/delegations.ts";
import { eventRoutes } from "./rest/events.ts";
import { statusRoutes } from "./rest/status.ts";
import { tokenRoutes } from "./rest/tokens.ts";
import type { Route } from "./route.ts";

export const ROUTES: readonly Route[] = [
  ...tokenRoutes,
  ...agentRoutes,
  ...delegationRoutes,
  ...batchRoutes,
  ...controlRoutes,
  ...eventRoutes,
  ...leaseRoutes,
  ...replyRoutes,
  ...statusRoutes,
];

let description: Document | undefined;

function describeApi(): Document {
  description ??= openapi(ROUTES, API_INFO);
  return description;
}

export interface DoorOptions {
  readonly broker: Broker;
  readonly host: string;
  readonly maxBodyBytes: number;
  readonly allowedOrigins: readonly string[];
  /** Signs agent cards; null leaves them unsigned. */
  readonly signer: Signer | null;
  /** Aborts when the gateway stops: parked polls are answered, streams end, new requests are refused. */
  readonly stopping: AbortSignal;
  /** Why the broker is not ready, or null. */
  readonly unready: () => Promise<string | null>;
}

/** A body that was there so soon leaves no time for a revocation that counts. */
const AT_ONCE_MS = 100;
/** How long a kept connection without a request stays open once the gateway stops. */
const IDLE_GRACE_MS = 300;

/** What a door has to say of itself to be let in behind the checks that all have in common. */
type Handled = Pick<Route, "path" | "run"> & { readonly method: string };

type Env = {
  Bindings: Partial<HttpBindings>;
  Variables: {
    requestId: string;
    route?: string;
    /** The origin of another site that was let in. */
    foreign?: string | undefined;
    /** The status of an answer that is on its way already. */
    sent?: number;
  };
};

export function createDoor(options: DoorOptions): Hono<Env> {
  const { broker, stopping } = options;
  const app = new Hono<Env>();
  const ends = new Set<() => void>();
  stopping.addEventListener("abort", () => {
    for (const end of ends) end();
  });
  const guard = originGuard(options.host, options.allowedOrigins);
  const fail = (error: unknown, c: Context<Env>) => {
    const requestId = c.get("requestId");
    const refused = toErrandError(error, broker.log, requestId, c.req.method);
    const problem = problemResponse(refused, requestId);
    // Its own words for it, the same status and headers.
    return c.req.path === MCP_PATH ? errorResponse(refused, requestId, problem) : problem;
  };

  /** What every answer says beside what it is about. */
  function commonHeaders(c: Context<Env>): Record<string, string> {
    const foreign = c.get("foreign");
    return {
      "x-request-id": c.get("requestId"),
      "x-content-type-options": "nosniff",
      "cache-control": "no-store",
      // Some origins get more to read than others; a cache must not mix them up.
      ...(options.allowedOrigins.length > 0 && { vary: "Origin" }),
      ...(stopping.aborted && { connection: "close" }),
      ...(foreign !== undefined && corsHeaders(foreign)),
    };
  }

  app.use(async (c, next) => {
    c.set("requestId", `req_${randomId(16)}`);
    await next();
    const status = c.get("sent") ?? c.res.status;
    broker.metrics.requests.inc({
      method: c.req.method,
      route: c.get("route") ?? "other",
      status: String(status),
    });
    if (c.get("sent") !== undefined) return;
    for (const [name, value] of Object.entries(commonHeaders(c))) {
      if (name !== "cache-control" || !c.res.headers.has(name)) c.res.headers.set(name, value);
    }
  });
  app.use(async (c, next) => {
    c.set("foreign", guard(headerOf(c, "origin"), headerOf(c, "host")));
    const asks = c.req.method === "OPTIONS" && headerOf(c, "access-control-request-method") !== undefined;
    // Asked without a token: browsers keep it for the request itself.
    if (c.get("foreign") === undefined || !asks) return next();
    c.res = new Response(null, { status: 204, headers: PREFLIGHT_HEADERS });
  });
  app.onError(fail);
  app.notFound((c) => fail(new ErrandError("not_found", `There is no ${c.req.method} ${c.req.path}.`), c));

  app.get("/healthz", (c) => c.json({ status: "ok" }));
  app.get("/readyz", async (c) => {
    const reason = stopping.aborted ? "shutting down" : await options.unready();
    return reason === null ? c.json({ status: "ready" }) : c.json({ status: "not_ready", reason }, 503);
  });
  app.get("/openapi.json", (c) => c.json(describeApi()));
  app.get("/docs", () => docsPage(describeApi()));

  for (const route of ROUTES) {
    app.on(route.method, route.path.replaceAll(/\{(\w+)\}/g, ":$1"), (c) => handle(c, route));
  }

  for (const mount of a2aDoor(broker, options.signer)) {
    for (const method of mount.methods) app.on(method, mount.path, (c) => pass(c, mount));
  }
  const mcp = createMcpDoor({ broker, stopping });
  app.on([...MCP_METHODS], MCP_PATH, (c) =>
    handle(c, {
      method: c.req.method,
      path: MCP_PATH,
      run: (call, { body }) => mcp.serve(call, c.req.method, c.req.raw.headers, body),
    }),
  );

  app.get("/metrics", async (c) => {
    // Most wanted when Redis is away.
    const identity = await broker.tokens.identify(bearerOf(headerOf(c, "authorization")), {
      lastKnown: true,
    });
    if (!/^(?:operator|viewer:.+)$/.test(identity.principal)) {
      throw new ErrandError("forbidden", "Only viewers and the operator may read the metrics.");
    }
    return c.body(await broker.metrics.text(), 200, { "content-type": broker.metrics.contentType });
  });

  function requireRunning(): void {
    if (!stopping.aborted) return;
    throw new ErrandError("shutting_down", "This gateway is shutting down.", { retry_after_seconds: 1 });
  }

  /** Lets a caller in, and reads what it brings. */
  async function enter(c: Context<Env>): Promise<{ call: Call; bytes: Uint8Array }> {
    requireRunning();
    const token = bearerOf(headerOf(c, "authorization"));
    const first = await broker.tokens.identify(token);
    const askedAt = performance.now();
    const hasBody = c.req.method === "POST" || c.req.method === "PUT";
    const { incoming } = c.env;
    const bytes = hasBody && incoming ? await readBody(incoming, options.maxBodyBytes) : new Uint8Array();
    // A body may take its time, and the gateway may be stopped or the token revoked meanwhile.
    requireRunning();
    const isLate = performance.now() - askedAt > AT_ONCE_MS;
    const identity = isLate ? await broker.tokens.identify(token) : first;
    const call = new Call({
      broker,
      requestId: c.get("requestId"),
      header: (name) => headerOf(c, name),
      identity,
      outgoing: c.env?.outgoing,
      ends,
    });
    return { call, bytes };
  }

  function deliver(c: Context<Env>, answer: Answer | Response): Response {
    if (!(answer instanceof Answer)) return answer;
    const outgoing: ServerResponse | undefined = c.env?.outgoing;
    if (!outgoing || c.env.incoming?.method === "HEAD") return new Response(answer.text, answer);
    answer.writeTo(outgoing, commonHeaders(c));
    c.set("sent", answer.status);
    return RESPONSE_ALREADY_SENT;
  }

  async function handle(c: Context<Env>, route: Handled): Promise<Response> {
    c.set("route", route.path);
    const { call, bytes } = await enter(c);
    const answer = await route.run(call, {
      params: c.req.param(),
      query: single(c.req.queries()),
      body: parseBody(bytes, headerOf(c, "content-type")),
    });
    return deliver(c, answer);
  }

  async function pass(c: Context<Env>, { path, handle: answer }: Mount): Promise<Response> {
    c.set("route", path.replaceAll(/:(\w+)/g, "{$1}"));
    const fixed = path.endsWith("/*") ? path.slice(0, -1).split("/").length - 1 : null;
    const exchange = {
      method: c.req.method,
      params: c.req.param(),
      rest: fixed === null ? "" : c.req.path.split("/").slice(fixed).join("/"),
      query: c.req.queries(),
      requestId: c.get("requestId"),
      header: (name: string) => headerOf(c, name),
      enter: () => enter(c),
    };
    return deliver(c, await answer(exchange));
  }
  return app;
}

/** Off the connection where there is one: a headers object is made for nothing but this. */
function headerOf(c: Context<Env>, name: string): string | undefined {
  const { incoming } = c.env;
  if (!incoming) return c.req.header(name);
  const value = incoming.headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
}

/** Each parameter once: whoever gave it twice meant something that no schema here can say. */
function single(query: Record<string, string[]>): Record<string, string | undefined> {
  const repeated = Object.keys(query).filter((name) => (query[name]?.length ?? 0) > 1);
  if (repeated.length > 0) {
    throw new ErrandError("invalid_request", `${repeated[0]}: stands in the query more than once`, {
      details: { issues: repeated.map((path) => ({ path, reason: "stands in the query more than once" })) },
    });
  }
  return Object.fromEntries(Object.entries(query).map(([name, [value]]) => [name, value]));
}

function bearerOf(header: string | undefined): string {
  const token = /^Bearer +(\S+)$/i.exec(header ?? "")?.[1];
  if (token === undefined) throw new ErrandError("unauthenticated", "There is no bearer token.");
  return token;
}

export interface Listener {
  readonly port: number;
  /** Stops accepting, lets what is in flight end, then cuts what is left. */
  readonly close: (graceMs: number) => Promise<void>;
}

export function listen(app: Hono<Env>, host: string, port: number): Promise<Listener> {
  return new Promise((resolve, reject) => {
    const server = serve(
      {
        fetch: app.fetch,
        hostname: host,
        port,
        serverOptions: {
          headersTimeout: 10_000,
          requestTimeout: 30_000,
          connectionsCheckingInterval: 2_000,
          keepAliveTimeout: 65_000,
        },
      },
      (info) => resolve({ port: info.port, close }),
    );
    server.once("error", reject);
    // Node closes only connections that have had a request; ones that never sent any would be waited for.
    const answering = new Map<Socket, number>();
    server.on("connection", (socket: Socket) => {
      answering.set(socket, 0);
      socket.once("close", () => answering.delete(socket));
    });
    server.on("request", (request: IncomingMessage, response: ServerResponse) => {
      const { socket } = request;
      answering.set(socket, (answering.get(socket) ?? 0) + 1);
      response.once("close", () => {
        if (answering.has(socket)) answering.set(socket, (answering.get(socket) ?? 1) - 1);
      });
    });
    const cut = (busyToo: boolean) => {
      for (const [socket, busy] of answering) {
        if (busyToo) socket.destroy();
        else if (busy === 0) socket.destroySoon();
      }
    };
    const close = (graceMs: number) =>
      new Promise<void>((done) => {
        // A request that is just being sent on a kept connection is still answered, and told to go elsewhere.
        const closingSince = Date.now();
        const idle = setInterval(() => Date.now() - closingSince > IDLE_GRACE_MS && cut(false), 20);
        const late = setTimeout(() => cut(true), graceMs);
        // Node's own close of an HTTP server also cuts answers that are not flushed yet.
        NetServer.prototype.close.call(server, () => {
          clearInterval(idle);
          clearTimeout(late);
          done();
        });
      });
  });
}
