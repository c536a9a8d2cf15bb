/**
 * The routes of the table, answered on Node's own objects: what Hono and the web's objects take for one request is more
 * than all the rest, and a parked poll would keep it. Hono's router finds the route. Limit: what is not plain (a
 * stream, a preflight, HEAD, an escaped path, no such route) is left to the Hono app, which serves the same routes.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { TrieRouter } from "hono/router/trie-router";
import type { Answer } from "./answer.ts";
import type { Gate, Inbound } from "./gate.ts";
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
    const cutOff = () => outgoing.destroy();
    answer(gate, { incoming, outgoing, route, params, query: cut === -1 ? "" : url.slice(cut + 1) }).catch(
      cutOff,
    );
    return true;
  };
}

/** As Hono writes a path. */
export const honoPath = ({ path }: Pick<Route, "path">): string => path.replaceAll(/\{(\w+)\}/g, ":$1");

interface Matched {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly route: Route;
  readonly params: unknown;
  readonly query: string;
}

async function answer(gate: Gate, { incoming, outgoing, route, params, query }: Matched): Promise<void> {
  const header = (name: string) => headerOf(incoming, name);
  const inbound: Inbound = {
    requestId: gate.newRequestId(),
    method: route.method,
    header,
    incoming,
    outgoing,
  };
  let foreign: string | undefined;
  let found: Answer;
  // Who is kept out has come to no route.
  let label = "other";
  try {
    foreign = gate.guard(header("origin"), header("host"));
    label = route.path;
    const given = await gate.run(inbound, route.run, params, query === "" ? NO_QUERY : queriesOf(query));
    if (given instanceof Response) throw new TypeError(`${route.path} answers with a stream`);
    found = given;
  } catch (error) {
    found = problemAnswer(gate.refusal(error, inbound.requestId, route.method), inbound.requestId);
  }
  found.writeTo(outgoing, gate.headers(inbound.requestId, foreign));
  gate.count(route.method, label, found.status);
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
