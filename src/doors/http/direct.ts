/**
 * Serves the routes of the table on Node's own objects, without the cost of Hono's and the web's objects per request,
 * which a parked poll or a stream would also retain. Hono's router finds the route. Limit: preflights, HEAD, escaped paths,
 * unusual hosts and unknown paths are left to the Hono app, which serves the same routes.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { TrieRouter } from "hono/router/trie-router";
import type { AuthenticatedRequest } from "./authenticated-request.ts";
import type { IncomingRequest } from "./incoming-request.ts";
import { plainPaths } from "./methods.ts";
import { type Pipeline, requireUtf8Query } from "./pipeline.ts";
import type { RawInput, Route } from "./route.ts";
import type { EventStream } from "./stream.ts";
import type { TextResponse } from "./text-response.ts";

const NO_QUERY = {};
/** A URL that the web's parser would change: escapes, fragments, dot segments, backslashes. */
const NOT_PLAIN = /[%#\\]|\/\./;
const PLAIN_HOST = /^[\w.:[\]-]*$/;

/** Returns false, with nothing done, for a request that it does not serve. */
export type DirectHandler = (incoming: IncomingMessage, outgoing: ServerResponse) => boolean;

export function createDirectHandler(pipeline: Pipeline, routes: readonly Route[]): DirectHandler {
  const router = new TrieRouter<Route>();
  for (const route of routes) router.add(route.method, honoPath(route), route);
  const plain = plainPaths(routes);
  return (incoming, outgoing) => {
    const { method = "", url = "" } = incoming;
    if (method === "HEAD" || method === "OPTIONS" || NOT_PLAIN.test(url)) return false;
    if (!PLAIN_HOST.test(incoming.headers.host ?? "")) return false;
    const cut = url.indexOf("?");
    const path = cut === -1 ? url : url.slice(0, cut);
    const [[route, params] = []] = router.match(method, path)[0];
    if (!route || (route.path !== path && plain.has(path))) return false;
    const query = cut === -1 ? "" : url.slice(cut + 1);
    new DirectRequest(pipeline, route, incoming, outgoing).serve(params, query);
    return true;
  };
}

/** A route's path in Hono's syntax. */
export const honoPath = ({ path }: Pick<Route, "path">): string => path.replaceAll(/\{(\w+)\}/g, ":$1");

/**
 * One request of such a route, until its response is sent. Most of its steps are not async functions, because a parked
 * poll would retain their frames with every local variable.
 */
class DirectRequest implements IncomingRequest {
  readonly requestId: string;
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly #pipeline: Pipeline;
  readonly #route: Route;
  /** The allowed origin of another site. */
  #foreign: string | undefined;
  #authenticated: AuthenticatedRequest | undefined;
  /** The route's label in the metrics; `other` until the origin is checked. */
  #label = "other";

  constructor(pipeline: Pipeline, route: Route, incoming: IncomingMessage, outgoing: ServerResponse) {
    this.requestId = pipeline.newRequestId();
    this.incoming = incoming;
    this.outgoing = outgoing;
    this.#pipeline = pipeline;
    this.#route = route;
  }

  get method(): string {
    return this.#route.method;
  }

  header(name: string): string | undefined {
    return headerOf(this.incoming, name);
  }

  serve(params: unknown, query: string): void {
    this.#admit(params, query)
      // The promise is not returned: one that waits for another would take as much memory again.
      .then(({ request, input }) => this.#run(request, input))
      .catch((error: unknown) => this.#refuse(error));
  }

  async #admit(params: unknown, query: string): ReturnType<Pipeline["admit"]> {
    this.#foreign = this.#pipeline.checkOrigin(this.header("origin"), this.header("host"));
    this.#label = this.#route.path;
    return this.#pipeline.admit(this, params, query === "" ? NO_QUERY : queriesOf(query), this.#route);
  }

  #run(request: AuthenticatedRequest, input: () => RawInput): void {
    this.#authenticated = request;
    this.#answer(this.#pipeline.inTurn(request, () => this.#route.run(request, input())));
  }

  /** Not a part of {@link #run}: its callbacks would retain `input`. */
  #answer(running: ReturnType<Route["run"]>): void {
    running.then(
      (response) => this.#send(() => response),
      (error: unknown) => this.#refuse(error),
    );
  }

  #refuse(error: unknown): void {
    this.#send(() => this.#problem(error));
  }

  #problem(error: unknown): TextResponse {
    return this.#pipeline.problem(error, this.requestId, this.method);
  }

  /** Closes the connection if the response cannot be written: the client cannot be informed. */
  #send(make: () => TextResponse | EventStream): void {
    this.#authenticated?.endTurn();
    try {
      const response = make();
      this.#pipeline.write(response, this, this.#foreign, this.#authenticated);
      this.#pipeline.count(this.method, this.#label, response.status);
    } catch {
      this.outgoing.destroy();
    }
  }
}

function queriesOf(query: string): Record<string, string[]> {
  requireUtf8Query(query);
  const found = new URLSearchParams(query);
  found.delete("");
  return Object.fromEntries([...new Set(found.keys())].map((name) => [name, found.getAll(name)]));
}

/** Read from Node's request, because a Headers object costs more. */
export function headerOf(incoming: IncomingMessage, name: string): string | undefined {
  const value = incoming.headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
}
