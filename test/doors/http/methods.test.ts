/** A path answers a method that it does not have with 405, and OPTIONS with 204; both name its methods in `Allow`. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { ROUTES } from "../../../src/doors/http/app.ts";
import { OPERATOR, startBroker, type TestBroker } from "../../support/broker.ts";

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"];
const filled = (path: string) => path.replaceAll(/\{\w+\}/g, "x");

const document: { paths: Record<string, Record<string, unknown>> } = JSON.parse(
  readFileSync(new URL("../../../docs/openapi.json", import.meta.url), "utf8"),
);

/** The paths outside the API description. */
const OTHERS: readonly [path: string, ...methods: string[]][] = [
  ["/", "GET"],
  ["/console/index.js", "GET"],
  ["/healthz", "GET"],
  ["/readyz", "GET"],
  ["/openapi.json", "GET"],
  ["/docs", "GET"],
  ["/metrics", "GET"],
  ["/mcp", "POST"],
  ["/ag-ui/x", "POST"],
  ["/ag-ui/x/capabilities", "GET"],
  ["/a2a/x/.well-known/agent-card.json", "GET"],
  ["/a2a/x/.well-known/agent.json", "GET"],
  ["/a2a/x/cards/1.0.json", "GET"],
  ["/a2a/x/rpc", "POST"],
  ["/a2a/x/rpc/", "POST"],
  ["/a2a/x/rest/message:send", "POST"],
  ["/a2a/x/rest/extendedAgentCard", "GET"],
  ["/a2a/x/rest/tasks/t", "GET"],
  ["/a2a/x/rest/tasks/t:cancel", "POST"],
  ["/a2a/x/rest/tasks/t:subscribe", "GET", "POST"],
  ["/a2a/x/rest/tasks/t/pushNotificationConfigs", "GET", "POST"],
  ["/a2a/x/rest/tasks/t/pushNotificationConfigs/c", "GET", "DELETE"],
  ["/a2a/x/rest/v1/message:stream", "POST"],
  ["/a2a/x/rest/v1/card", "GET"],
];

const described = Object.entries(document.paths).map(
  ([path, operations]) =>
    [filled(path), ...Object.keys(operations).map((verb) => verb.toUpperCase())] as const,
);

const sorted = (methods: readonly string[]) => [...methods].sort().join(", ");
const expectedAllow = (methods: readonly string[]) =>
  sorted([...methods, "OPTIONS", ...(methods.includes("GET") ? ["HEAD"] : [])]);
const allowOf = ({ headers }: { headers: Headers }) =>
  sorted((headers.get("allow") ?? "").split(", ").filter(Boolean));

const send = ({ url }: TestBroker, method: string, path: string, headers: Record<string, string> = {}) =>
  fetch(url + path, {
    method,
    headers: { "a2a-version": path.includes("/rest/v1/") ? "0.3" : "1.0", ...headers },
  });

test("every path", async () => {
  const broker = await startBroker();
  expect(described).toHaveLength(new Set(ROUTES.map(({ path }) => path)).size);
  await Promise.all(
    [...described, ...OTHERS].map(async ([path, ...methods]) => {
      const allow = expectedAllow(methods);
      const options = await send(broker, "OPTIONS", path);
      expect([path, options.status, allowOf(options)]).toEqual([path, 204, allow]);
      for (const method of METHODS) {
        if (allow.split(", ").includes(method)) continue;
        const answer = await send(broker, method, path, { authorization: `Bearer ${OPERATOR}` });
        const what = `${method} ${path}`;
        expect([what, answer.status, allowOf(answer)]).toEqual([what, 405, allow]);
        const text = await answer.text();
        expect([what, text]).toEqual([
          what,
          method === "HEAD" ? "" : expect.stringMatching(/method_not_allowed/i),
        ]);
      }
    }),
  );
});
