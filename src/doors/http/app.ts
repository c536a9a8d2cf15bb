/**
 * The HTTP door: routes from the tables, a principal for each request, errors as problem+json. Limit: it has
 * no rules; it parses, calls one verb, and renders.
 */
import { type HttpBindings, RequestError } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { type Context, Hono } from "hono";
import { ErrandError } from "../../schema/errors.ts";
import type { Signer } from "../a2a/cards/signing.ts";
import { a2aRoutes } from "../a2a/routes.ts";
import { mcpRoutes } from "../mcp/routes.ts";
import type { Extension } from "../mcp/server.ts";
import { docsPage } from "../openapi/docs-page.ts";
import { API_INFO, openapi } from "../openapi/document.ts";
import type { Document } from "../openapi/types.ts";
import { agentRoutes } from "../rest/agents.ts";
import { auditRoutes } from "../rest/audit.ts";
import { batchRoutes } from "../rest/batch.ts";
import { controlRoutes } from "../rest/control.ts";
import { delegationRoutes } from "../rest/delegations.ts";
import { eventRoutes } from "../rest/events.ts";
import { leaseRoutes } from "../rest/leases.ts";
import { replyRoutes } from "../rest/replies.ts";
import { statusRoutes } from "../rest/status.ts";
import { tokenRoutes } from "../rest/tokens.ts";
import { Answer, withText } from "./answer.ts";
import type { Call } from "./call.ts";
import { createDirect, type Direct, honoPath, headerOf as incomingHeader } from "./direct.ts";
import type { Mount } from "./exchange.ts";
import { bearerOf, Gate, type GateOptions, type Inbound } from "./gate.ts";
import type { InProgress } from "./in-progress.ts";
import { PREFLIGHT_HEADERS } from "./origin.ts";
import { problemResponse } from "./problem.ts";
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
  ...auditRoutes,
  ...statusRoutes,
];

let description: Document | undefined;

function describeApi(): Document {
  description ??= openapi(ROUTES, API_INFO);
  return description;
}

export interface DoorOptions extends GateOptions {
  /** Signs agent cards; null leaves them unsigned. */
  readonly signer: Signer | null;
  /** Why the broker is not ready, or null. */
  readonly unready: () => Promise<string | null>;
  /** More for MCP clients than the broker's own; for tests. */
  readonly mcpExtension?: Extension | undefined;
  /** How long an MCP client may take to answer a ping; for tests. */
  readonly mcpPingMs?: number | undefined;
}

export interface Door {
  readonly app: Hono<Env>;
  readonly direct: Direct;
  /** The answer where the app makes none: of a host or an address that is none there is no request for it. */
  readonly unserved: (error: unknown) => Response;
  /** Bytes of large request bodies in progress: of one principal, or of all. */
  readonly requestBytes: (principal?: string) => number;
  /** How many requests of a principal run, and how many wait for their turn. */
  readonly inProgress: InProgress["of"];
}

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

export function createDoor(options: DoorOptions): Door {
  const { broker, stopping } = options;
  const app = new Hono<Env>();
  const gate = new Gate(options);
  const fail = (error: unknown, c: Context<Env>) => {
    const requestId = c.get("requestId");
    return problemResponse(gate.refusal(error, requestId, c.req.method), requestId);
  };
  const commonHeaders = (c: Context<Env>) => gate.headers(c.get("requestId"), c.get("foreign"));

  app.use(async (c, next) => {
    c.set("requestId", gate.newRequestId());
    await next();
    gate.count(c.req.method, c.get("route") ?? "other", c.get("sent") ?? c.res.status);
    if (c.get("sent") !== undefined) return;
    for (const [name, value] of Object.entries(commonHeaders(c))) {
      if (name !== "cache-control" || !c.res.headers.has(name)) c.res.headers.set(name, value);
    }
  });
  app.use(async (c, next) => {
    c.set("foreign", gate.guard(headerOf(c, "origin"), headerOf(c, "host")));
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
  app.get("/openapi.json", async (c) => deliver(c, await withText(c.json(describeApi()))));
  app.get("/docs", async (c) => deliver(c, await withText(docsPage(describeApi()))));

  for (const route of ROUTES) {
    app.on(route.method, honoPath(route), (c) => handle(c, route));
  }

  for (const mount of [
    ...a2aRoutes(broker, options.signer),
    ...mcpRoutes({
      broker,
      stopping,
      inTurn: (call, work) => gate.turn(call, work),
      extension: options.mcpExtension,
      pingMs: options.mcpPingMs,
    }),
  ]) {
    for (const method of mount.methods) app.on(method, mount.path, (c) => pass(c, mount));
  }

  app.get("/metrics", async (c) => {
    // Most wanted when Redis is away.
    const identity = await broker.tokens.identify(bearerOf(headerOf(c, "authorization")), {
      lastKnown: true,
    });
    if (!/^(?:operator|viewer:.+)$/.test(identity.principal)) {
      throw new ErrandError("forbidden", "Only viewers and the operator may read the metrics.");
    }
    const type = { "content-type": broker.metrics.contentType };
    return deliver(c, new Answer(200, await broker.metrics.text(), type));
  });

  const inboundOf = (c: Context<Env>): Inbound => ({
    requestId: c.get("requestId"),
    method: c.req.method,
    header: (name) => headerOf(c, name),
    incoming: c.env?.incoming,
    outgoing: c.env?.outgoing,
  });

  function deliver(c: Context<Env>, answer: Answer | Response, call?: Call): Response {
    if (!(answer instanceof Answer)) return answer;
    const inbound = inboundOf(c);
    const { incoming, outgoing } = inbound;
    if (!outgoing || incoming?.method === "HEAD") return new Response(answer.text, answer);
    gate.write(answer, inbound, c.get("foreign"), call);
    c.set("sent", answer.status);
    return RESPONSE_ALREADY_SENT;
  }

  async function handle(c: Context<Env>, route: Route): Promise<Response> {
    c.set("route", route.path);
    const { call, raw } = await gate.admit(inboundOf(c), c.req.param(), c.req.queries(), route);
    return gate.turn(call, async () => deliver(c, await route.run(call, raw), call));
  }

  async function pass(c: Context<Env>, { path, handle: answer }: Mount): Promise<Response> {
    c.set("route", path.replaceAll(/:(\w+)/g, "{$1}"));
    const fixed = path.endsWith("/*") ? path.slice(0, -1).split("/").length - 1 : null;
    let call: Call | undefined;
    const exchange = {
      method: c.req.method,
      params: c.req.param(),
      rest: fixed === null ? "" : c.req.path.split("/").slice(fixed).join("/"),
      query: c.req.queries(),
      requestId: c.get("requestId"),
      header: (name: string) => headerOf(c, name),
      enter: async () => {
        const entered = await gate.enter(inboundOf(c));
        call = entered.call;
        await gate.run(call, async () => {});
        return entered;
      },
    };
    try {
      const given = await answer(exchange);
      return deliver(c, given instanceof Response ? await withText(given) : given, call);
    } finally {
      call?.endTurn();
    }
  }
  function unserved(error: unknown): Response {
    const requestId = gate.newRequestId();
    const refused =
      error instanceof RequestError
        ? new ErrandError("invalid_request", "The Host header or the address is not well-formed.")
        : gate.refusal(error, requestId, "POST");
    const response = problemResponse(refused, requestId);
    for (const [name, value] of Object.entries(gate.headers(requestId, undefined)))
      response.headers.set(name, value);
    return response;
  }
  const requestBytes = (principal?: string) => gate.inflow.requestBytes(principal);
  const inProgress = (principal: string) => gate.inProgress.of(principal);
  return { app, direct: createDirect(gate, ROUTES), unserved, requestBytes, inProgress };
}

/** Off the connection where there is one. */
function headerOf(c: Context<Env>, name: string): string | undefined {
  const { incoming } = c.env;
  return incoming ? incomingHeader(incoming, name) : c.req.header(name);
}
