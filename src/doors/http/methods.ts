/**
 * Which methods each path has, read from the router's own table: for `Allow`, in 405 and in answers to OPTIONS. Limit: it
 * does not know whether a resource exists, only that its path does.
 */
import { TrieRouter } from "hono/router/trie-router";
import { ErrandError } from "../../schema/errors.ts";

const ORDER = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
/** What Hono calls the method of a middleware. */
const ANY = "ALL";

interface Registered {
  readonly method: string;
  readonly path: string;
}

/** `narrower`: for a route whose methods depend on the rest of the path, by the route's path. */
export function methodTable(
  routes: readonly Registered[],
  narrower: ReadonlyMap<string, (path: string) => readonly string[]>,
): (path: string) => readonly string[] {
  const router = new TrieRouter<Registered>();
  for (const route of routes) if (route.method !== ANY) router.add(ANY, route.path, route);
  return (path) => {
    const matches = router.match(ANY, path)[0].map(([route]) => route);
    const fewest = Math.min(...matches.map(parametersOf));
    const found = matches.filter((route) => parametersOf(route) === fewest);
    const [first] = found;
    const methods = (first && narrower.get(first.path)?.(path)) ?? found.map(({ method }) => method);
    return withImplied(methods);
  };
}

/** `/v1/sessions/codes` is also a `/v1/sessions/:id`; the path with fewer parameters counts. */
const parametersOf = ({ path }: Registered): number => path.split(/[:*]/).length;

/** The paths without parameters: such a path is not the id of another route, whatever its method. */
export const plainPaths = (routes: readonly { readonly path: string }[]): ReadonlySet<string> =>
  new Set(routes.map(({ path }) => path).filter((path) => !path.includes("{")));

/** Adds HEAD and OPTIONS, which every path has by its other methods. */
export function withImplied(methods: readonly string[]): string[] {
  if (methods.length === 0) return [];
  const all = [...methods, "OPTIONS", ...(methods.includes("GET") ? ["HEAD"] : [])];
  return ORDER.filter((method) => all.includes(method));
}

export const methodNotAllowed = (method: string, path: string, allow: readonly string[]): ErrandError =>
  new ErrandError("method_not_allowed", `${path} has no ${method}; it has ${allow.join(", ")}.`, { allow });
