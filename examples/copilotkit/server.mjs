/**
 * CopilotKit's runtime in front of the broker: it serves a page, and passes the page's runs on to one agent over AG-UI.
 * The token stays here; the page never sees it. Needs ERRAND_URL, a caller's ERRAND_TOKEN, and an agent (ERRAND_AGENT,
 * default: release).
 */
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { HttpAgent } from "@ag-ui/client";
import { CopilotRuntime } from "@copilotkit/runtime/v2";
import { createCopilotNodeListener } from "@copilotkit/runtime/v2/node";

const { ERRAND_URL = "http://127.0.0.1:4180", ERRAND_TOKEN = "", ERRAND_AGENT = "release" } = process.env;
const { HOST = "127.0.0.1", PORT = "4190" } = process.env;

const agent = new HttpAgent({
  url: `${ERRAND_URL}/ag-ui/${ERRAND_AGENT}`,
  headers: { authorization: `Bearer ${ERRAND_TOKEN}` },
});
const runtime = new CopilotRuntime({ agents: { [ERRAND_AGENT]: agent } });
const copilot = createCopilotNodeListener({ runtime, basePath: "/api/copilotkit" });
const page = readFileSync(new URL("page.html", import.meta.url), "utf8").replaceAll(
  "{{agent}}",
  ERRAND_AGENT,
);

const server = createServer((request, response) => {
  if (request.url?.startsWith("/api/copilotkit")) return void copilot(request, response);
  response.writeHead(request.url === "/" ? 200 : 404, { "content-type": "text/html; charset=utf-8" });
  response.end(request.url === "/" ? page : "");
});
server.listen(Number(PORT), HOST, () => {
  process.stdout.write(`the page is at http://${HOST}:${server.address().port}\n`);
});
for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, () => {
    server.closeAllConnections();
    server.close(() => process.exit(0));
  });
}
