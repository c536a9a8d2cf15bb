/**
 * One request for a route of the table, from Hono's match to the response. It is read and written on Node's own objects:
 * Hono's handler returns at once, so a parked poll or an open stream retains hardly anything of Hono's.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AuthenticatedRequest } from "./authenticated-request.ts";
import { headerOf, type IncomingRequest } from "./incoming-request.ts";
import { type Pipeline, requireUtf8Query } from "./pipeline.ts";
import type { RawInput, Route, RouteResponse } from "./route.ts";
import type { TextResponse } from "./text-response.ts";

const NO_QUERY = {};

/**
 * Lives until its response is sent. Most of its steps are not async functions, because a parked poll would retain their
 * frames with every local variable.
 */
export class TableRequest implements IncomingRequest {
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

  /** HEAD, or the route's own. */
  get method(): string {
    return this.incoming.method ?? this.#route.method;
  }

  header(name: string): string | undefined {
    return headerOf(this.incoming, name);
  }

  /** `params` are the decoded ones of the path; `url` is absolute. */
  serve(params: unknown, url: string): void {
    this.#admit(params, url)
      // The promise is not returned: one that waits for another would take as much memory again.
      .then(({ request, input }) => this.#run(request, input))
      .catch((error: unknown) => this.#refuse(error));
  }

  async #admit(params: unknown, url: string): ReturnType<Pipeline["admit"]> {
    this.#foreign = this.#pipeline.checkHead(this);
    this.#label = this.#route.path;
    return this.#pipeline.admit(this, params, url.includes("?") ? queriesOf(url) : NO_QUERY, this.#route);
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
  #send(make: () => RouteResponse): void {
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

function queriesOf(url: string): Record<string, string[]> {
  const { search, searchParams } = new URL(url);
  requireUtf8Query(search);
  searchParams.delete("");
  return Object.fromEntries(
    [...new Set(searchParams.keys())].map((name) => [name, searchParams.getAll(name)]),
  );
}
