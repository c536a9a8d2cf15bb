/**
 * The HTTP app. Hono finds the handler of every request: first of a route of the table, which table-request.ts serves,
 * then of everything else (pages, health, metrics, A2A, MCP, 404, 405), which passes the middleware here. Limit: no rules; it
 * parses, calls one verb of the engine, and renders.
 *
 * A new endpoint is one `route({ … })` in a file of doors/rest, whose list is a part of {@link ROUTES}.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { getRequestListener, type HttpBindings, RequestError } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { type Context, Hono } from "hono";
import type { Readiness } from "../../redis/connections.ts";
import { ErrandError } from "../../schema/errors.ts";
import { BoundedMap } from "../../util/bounded.ts";
import type { CardSigner } from "../a2a/cards/signing.ts";
import { a2aAddresses, a2aRoutes } from "../a2a/routes.ts";
import { agUiRoutes } from "../agui/routes.ts";
import { consoleRoutes } from "../console/console.ts";
import { mcpRoutes } from "../mcp/routes.ts";
import type { McpTestExtension } from "../mcp/server.ts";
import { docsPage } from "../openapi/docs-page.ts";
import { API_INFO, openapi } from "../openapi/document.ts";
import { agentRoutes } from "../rest/agents.ts";
import { answerRoutes } from "../rest/answers.ts";
import { auditRoutes } from "../rest/audit.ts";
import { batchRoutes } from "../rest/batch.ts";
import { delegationActionRoutes } from "../rest/delegation-actions.ts";
import { delegationRoutes } from "../rest/delegations.ts";
import { eventRoutes } from "../rest/events.ts";
import { fileRoutes } from "../rest/files.ts";
import { leaseRoutes } from "../rest/leases.ts";
import { linkRoutes } from "../rest/links.ts";
import { replyRoutes } from "../rest/replies.ts";
import { ruleRoutes } from "../rest/rules.ts";
import { scheduleRoutes } from "../rest/schedules.ts";
import { sessionRoutes } from "../rest/sessions.ts";
import { statsRoutes } from "../rest/stats.ts";
import { statusRoutes } from "../rest/status.ts";
import { subscriptionRoutes } from "../rest/subscriptions.ts";
import { tokenRoutes } from "../rest/tokens.ts";
import { treeRoutes } from "../rest/trees.ts";
import type { AuthenticatedRequest } from "./authenticated-request.ts";
import type { ConcurrencyLimiter } from "./concurrency-limiter.ts";
import type { EventStream } from "./event-stream.ts";
import { HEALTH_CHECKS, isHealthCheck, repairHost } from "./health.ts";
import { headerOf, type IncomingRequest } from "./incoming-request.ts";
import { KeptPage } from "./kept-page.ts";
import { publicPath } from "./links.ts";
import { methodNotAllowed, methodTable, plainPaths } from "./methods.ts";
import type { Mount, MountedRequest } from "./mount.ts";
import { PREFLIGHT_HEADERS } from "./origin.ts";
import { bearerOf, Pipeline, type PipelineOptions } from "./pipeline.ts";
import { problemResponse } from "./problem.ts";
import type { Route } from "./route.ts";
import { TableRequest } from "./table-request.ts";
import { TextResponse, withText } from "./text-response.ts";

/** The routes of the API description. */
export const ROUTES: readonly Route[] = [
  ...tokenRoutes,
  ...sessionRoutes,
  ...agentRoutes,
  ...delegationRoutes,
  ...batchRoutes,
  ...delegationActionRoutes,
  ...answerRoutes,
  ...scheduleRoutes,
  ...ruleRoutes,
  ...subscriptionRoutes,
  ...linkRoutes,
  ...eventRoutes,
  ...treeRoutes,
  ...leaseRoutes,
  ...replyRoutes,
  ...fileRoutes,
  ...auditRoutes,
  ...statsRoutes,
  ...statusRoutes,
];

/** AG-UI has a specification of its own, so the API description does not repeat it. */
const SERVED: readonly Route[] = [...ROUTES, ...agUiRoutes];

/** Common headers that a response may have of its own. */
const OWN_HEADERS = ["cache-control", "vary"];

/** By the path of the public URL. */
const descriptions = new BoundedMap<string, ReturnType<typeof render>>(10);

function render(base: string) {
  const document = openapi(ROUTES, API_INFO, { base });
  const { text, headers } = docsPage(document);
  return {
    "/openapi.json": new KeptPage(JSON.stringify(document), { "content-type": "application/json" }),
    "/docs": new KeptPage(text, headers),
  };
}

function describeApi(base: string): ReturnType<typeof render> {
  const known = descriptions.get(base);
  if (known) return known;
  const description = render(base);
  descriptions.set(base, description);
  return description;
}

export interface HttpAppOptions extends PipelineOptions {
  /** Signs agent cards; null leaves them unsigned. */
  readonly signer: CardSigner | null;
  /** Tests with a write, because a replica, or a Redis whose disk is full, still answers a ping. */
  readonly readiness: () => Promise<Readiness>;
  /** Additional MCP tools; for tests. */
  readonly mcpExtension?: McpTestExtension | undefined;
  /** How long an MCP client may take to answer a ping; for tests. */
  readonly mcpPingMs?: number | undefined;
}

export interface HttpApp {
  /** Serves a request of a Node server. */
  readonly serve: (incoming: IncomingMessage, outgoing: ServerResponse) => void;
  /** Everything that Hono serves, in its syntax. */
  readonly routes: Hono["routes"];
  /** Bytes of the large request bodies that are in progress: of one principal, or of all if none is given. */
  readonly requestBytes: (principal?: string) => number;
  /** Bytes that are counted as unread: of one principal or address, or of all. */
  readonly unreadBytes: (owner?: string) => number;
  /** The number of a principal's requests that run, and of those that wait for their turn. */
  readonly inProgress: ConcurrencyLimiter["of"];
}

type Env = {
  Bindings: HttpBindings;
  Variables: {
    requestId: string;
    route?: string;
    /** The allowed origin of another site. */
    foreign?: string | undefined;
    /** The status of a response that is already written. */
    sent?: number;
  };
};

export function createHttpApp(options: HttpAppOptions): HttpApp {
  const { broker } = options;
  const app = new Hono<Env>();
  const pipeline = new Pipeline(options);
  const fail = (error: unknown, c: Context<Env>) => {
    const requestId = c.get("requestId");
    return problemResponse(pipeline.toError(error, requestId, methodOf(c)), requestId, broker.id);
  };
  const commonHeaders = (c: Context<Env>) => pipeline.headers(c.get("requestId"), c.get("foreign"));

  // Before the middleware, which a parked poll would retain.
  const plain = plainPaths(SERVED);
  for (const route of SERVED) {
    app.on(route.method, honoPath(route), (c, next) => {
      // A path of its own is not the id of another route: this method it does not have.
      if (route.path !== c.req.path && plain.has(c.req.path)) return next();
      new TableRequest(pipeline, route, c.env.incoming, c.env.outgoing).serve(c.req.param(), c.req.url);
      return RESPONSE_ALREADY_SENT;
    });
  }

  app.use(async (c, next) => {
    c.set("requestId", pipeline.newRequestId());
    await next();
    pipeline.count(methodOf(c), c.get("route") ?? "other", c.get("sent") ?? c.res.status);
    if (c.get("sent") !== undefined) return;
    for (const [name, value] of Object.entries(commonHeaders(c))) {
      if (!OWN_HEADERS.includes(name) || !c.res.headers.has(name)) c.res.headers.set(name, value);
    }
  });
  app.use(async (c, next) => {
    c.set("foreign", pipeline.checkHead(requestOf(c), isHealthCheck(c.req.path)));
    const isPreflight =
      methodOf(c) === "OPTIONS" && headerOf(c.env.incoming, "access-control-request-method") !== undefined;
    // A browser sends no token with a preflight.
    if (c.get("foreign") === undefined || !isPreflight) return next();
    c.res = new Response(null, { status: 204, headers: PREFLIGHT_HEADERS });
  });
  app.onError(fail);
  app.notFound((c) => {
    const [method, { path }] = [methodOf(c), c.req];
    const allow = methodsOf(path);
    if (allow.length > 0) {
      if (method !== "OPTIONS") return fail(methodNotAllowed(method, path, allow), c);
      return new Response(null, { status: 204, headers: { allow: allow.join(", ") } });
    }
    const recovery = a2aAddresses(broker.publicUrl(), path);
    const context = recovery === undefined ? {} : { recovery };
    return fail(new ErrandError("not_found", `There is no ${method} ${path}.`, context), c);
  });

  for (const [path, check] of Object.entries(HEALTH_CHECKS)) {
    app.get(path, async (c) => deliver(c, await check(options)));
  }
  for (const path of ["/openapi.json", "/docs"] as const) {
    app.get(path, (c) => {
      const { [path]: page } = describeApi(publicPath(broker.publicUrl(), "/"));
      return deliver(
        c,
        page.respond((name) => headerOf(c.env.incoming, name)),
      );
    });
  }

  const mounts: readonly Mount[] = [
    ...consoleRoutes(),
    ...a2aRoutes(broker, options.signer),
    ...mcpRoutes({
      broker,
      runInTurn: (request, work) => pipeline.inWholeTurn(request, work),
      extension: options.mcpExtension,
      pingMs: options.mcpPingMs,
    }),
  ];
  for (const mount of mounts) {
    for (const method of mount.methods) app.on(method, mount.path, (c) => serveMount(c, mount));
  }

  app.get("/metrics", async (c) => {
    // Metrics matter most when Redis is unavailable.
    const identity = await broker.tokens.identify(bearerOf(headerOf(c.env.incoming, "authorization")), {
      lastKnown: true,
    });
    if (!/^(?:operator|viewer:.+)$/.test(identity.principal)) {
      throw new ErrandError("forbidden", "Only viewers and the operator may read the metrics.");
    }
    const type = { "content-type": broker.metrics.contentType };
    return deliver(c, new TextResponse(200, await broker.metrics.text(), type));
  });

  const narrower = mounts.flatMap(({ path, methodsAt }) => (methodsAt ? [[path, methodsAt] as const] : []));
  const methodsOf = methodTable(app.routes, new Map(narrower));

  const requestOf = (c: Context<Env>): IncomingRequest => ({
    requestId: c.get("requestId"),
    method: methodOf(c),
    header: (name) => headerOf(c.env.incoming, name),
    incoming: c.env.incoming,
    outgoing: c.env.outgoing,
  });

  function deliver(
    c: Context<Env>,
    response: TextResponse | EventStream | Response,
    authenticated?: AuthenticatedRequest,
  ): Response {
    if (!(response instanceof Response)) {
      pipeline.write(response, requestOf(c), c.get("foreign"), authenticated);
    } else if (response.body) {
      pipeline.pipe(response, response.body, requestOf(c), c.get("foreign"), authenticated);
    } else return response;
    c.set("sent", response.status);
    return RESPONSE_ALREADY_SENT;
  }

  async function serveMount(c: Context<Env>, { path, handle }: Mount): Promise<Response> {
    c.set("route", path.replaceAll(/:(\w+)/g, "{$1}"));
    const prefix = path.endsWith("/*") ? path.slice(0, -1).split("/").length - 1 : null;
    let authenticated: AuthenticatedRequest | undefined;
    const mounted: MountedRequest = {
      ...requestOf(c),
      params: c.req.param(),
      rest: prefix === null ? "" : c.req.path.split("/").slice(prefix).join("/"),
      query: c.req.queries(),
      authenticate: async () => {
        const result = await pipeline.authenticate(requestOf(c));
        authenticated = result.request;
        await pipeline.inTurn(authenticated, async () => {});
        return result;
      },
    };
    try {
      const response = await handle(mounted);
      return deliver(c, response instanceof Response ? await withText(response) : response, authenticated);
    } finally {
      authenticated?.endTurn();
    }
  }

  /** For a request with a malformed Host or URL, for which Hono cannot be called. */
  function toErrorResponse(error: unknown): Response {
    const requestId = pipeline.newRequestId();
    const refused =
      error instanceof RequestError
        ? new ErrandError("invalid_request", "The Host header or the URL is malformed.", {
            details: { issues: [{ path: "Host", reason: "malformed, or the URL is" }] },
          })
        : pipeline.toError(error, requestId, "POST");
    const response = problemResponse(refused, requestId, broker.id);
    for (const [name, value] of Object.entries(pipeline.headers(requestId, undefined)))
      response.headers.set(name, value);
    return response;
  }
  // HEAD is served as GET, and Node leaves out the body: Hono would copy the response, and one that is written already has
  // nothing to copy.
  const fetch: typeof app.fetch = (request, ...rest) =>
    app.fetch(request.method === "HEAD" ? new Request(request.url) : request, ...rest);
  const listener = getRequestListener(fetch, { hostname: options.host, errorHandler: toErrorResponse });
  return {
    serve: (incoming, outgoing) => {
      repairHost(incoming);
      void listener(incoming, outgoing);
    },
    routes: app.routes,
    requestBytes: (principal?: string) => pipeline.inflow.requestBytes(principal),
    unreadBytes: (owner?: string) => pipeline.outflow.unread(owner),
    inProgress: (principal: string) => pipeline.limiter.of(principal),
  };
}

/** As the client sent it. */
const methodOf = ({ env, req }: Context<Env>): string => env.incoming.method ?? req.method;

/** A route's path in Hono's syntax. */
const honoPath = ({ path }: Route): string => path.replaceAll(/\{(\w+)\}/g, ":$1");
