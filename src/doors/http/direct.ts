/**
 * The routes of the table, answered on Node's own objects: what Hono and the web's objects take for one request is more
 * than all the rest, and a parked poll would keep it. Hono's router finds the route. Limit: what is not plain (a
 * stream, a preflight, HEAD, an escaped path, no such route) is left to the Hono app, which serves the same routes.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { TrieRouter } from "hono/router/trie-router";
import type { Answer } from "./answer.ts";
import type { Call } from "./call.ts";
import type { Admitted, Gate, Inbound } from "./gate.ts";
import { problemAnswer } from "./problem.ts";
import type { Route } from "./route.ts";

const NO_QUERY = {};
/** What the web's URL reads in another way than it stands there: escapes, fragments, dots, backslashes. */
const NOT_PLAIN = /[%#\\]|\/\./;

/** False: not one of these, and nothing was done. */
export type Direct = (incoming: IncomingMessage, outgoing: ServerResponse) => boolean;

export function createDirect(gate: Gate, routes: readonly Route[]): Direct {
  const router = new TrieRouter<Route>();
  for (const route of routes) {
    if (!route.notes?.streams) router.add(route.method, honoPath(route), route);
  }
  return (incoming, outgoing) => {
    const { method = "", url = "" } = incoming;
    if (method === "HEAD" || method === "OPTIONS" || NOT_PLAIN.test(url)) return false;
    const cut = url.indexOf("?");
    const path = cut === -1 ? url : url.slice(0, cut);
    const [[route, params] = []] = router.match(method, path)[0];
    if (!route) return false;
    new DirectExchange(gate, route, incoming, outgoing).answer(params, cut === -1 ? "" : url.slice(cut + 1));
    return true;
  };
}

/** As Hono writes a path. */
export const honoPath = ({ path }: Pick<Route, "path">): string => path.replaceAll(/\{(\w+)\}/g, ":$1");

/**
 * One of these requests, until its answer is out. (An object, and steps that are not async: a parked poll keeps what it
 * waits in, and the frame of an async function keeps all that it ever had in hand.)
 */
class DirectExchange implements Inbound {
  readonly requestId: string;
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly #gate: Gate;
  readonly #route: Route;
  /** The origin of another site that was let in. */
  #foreign: string | undefined;
  #call: Call | undefined;
  /** Who is kept out has come to no route. */
  #label = "other";

  constructor(gate: Gate, route: Route, incoming: IncomingMessage, outgoing: ServerResponse) {
    this.requestId = gate.newRequestId();
    this.incoming = incoming;
    this.outgoing = outgoing;
    this.#gate = gate;
    this.#route = route;
  }

  get method(): string {
    return this.#route.method;
  }

  header(name: string): string | undefined {
    return headerOf(this.incoming, name);
  }

  answer(params: unknown, query: string): void {
    this.#admitted(params, query)
      // Not returned: a promise that waits for another takes as much again.
      .then((admitted) => void this.#run(admitted))
      .catch((error: unknown) => this.#refuse(error));
  }

  async #admitted(params: unknown, query: string): Promise<Admitted> {
    this.#foreign = this.#gate.guard(this.header("origin"), this.header("host"));
    this.#label = this.#route.path;
    return this.#gate.admit(this, params, query === "" ? NO_QUERY : queriesOf(query), this.#route);
  }

  #run({ call, raw }: Admitted): Promise<void> {
    this.#call = call;
    return this.#gate
      .run(call, () => this.#route.run(call, raw))
      .then(
        (given) => this.#send(() => this.#plain(given)),
        (error: unknown) => this.#refuse(error),
      );
  }

  #refuse(error: unknown): void {
    this.#send(() => this.#problem(error));
  }

  #plain(given: Answer | Response): Answer {
    if (!(given instanceof Response)) return given;
    return this.#problem(new TypeError(`${this.#route.path} answers with a stream`));
  }

  #problem(error: unknown): Answer {
    return problemAnswer(this.#gate.refusal(error, this.requestId, this.method), this.requestId);
  }

  /** Cuts the connection where that fails: nobody is left to tell. */
  #send(answer: () => Answer): void {
    this.#call?.endTurn();
    try {
      const found = answer();
      this.#gate.write(found, this, this.#foreign, this.#call);
      this.#gate.count(this.method, this.#label, found.status);
    } catch {
      this.outgoing.destroy();
    }
  }
}

function queriesOf(query: string): Record<string, string[]> {
  const found = new URLSearchParams(query);
  found.delete("");
  return Object.fromEntries([...new Set(found.keys())].map((name) => [name, found.getAll(name)]));
}

/** Off the connection: a headers object is made for nothing but this. */
export function headerOf(incoming: IncomingMessage, name: string): string | undefined {
  const value = incoming.headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
}
