/** Something in front of a gateway: it passes everything on, until it answers by itself. */
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { onTestFinished } from "vitest";

export type ForeignAnswer = (outgoing: ServerResponse, incoming: IncomingMessage, socket: Socket) => void;

export class Front {
  /** Paths of the requests that it answered itself. */
  readonly answered: string[] = [];
  /** Paths of the requests that it passed on. */
  readonly passed: string[] = [];
  readonly #server = createServer((incoming, outgoing) => this.#take(incoming, outgoing));
  readonly #open = new Set<ServerResponse>();
  #foreign: ForeignAnswer | undefined;
  #target: string;

  constructor(target: string) {
    this.#target = target;
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => {
      this.#server.close();
      this.#server.closeAllConnections();
    });
    return this;
  }

  get url(): string {
    const address = this.#server.address();
    return `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
  }

  /** Answers by itself from now on, and cuts what waits at the gateway. */
  replace(foreign: ForeignAnswer): void {
    this.answered.length = 0;
    this.#foreign = foreign;
    for (const outgoing of this.#open) outgoing.destroy();
  }

  /** Passes requests on again, to another gateway if one is given. */
  restore(target = this.#target): void {
    this.#target = target;
    this.#foreign = undefined;
  }

  /** How many of the requests that it passed on have no complete answer yet. */
  get parked(): number {
    return this.#open.size;
  }

  /** How many of those have begun to be answered. */
  get begun(): number {
    return [...this.#open].filter(({ headersSent }) => headersSent).length;
  }

  /** How many requests to paths with this ending it answered itself. */
  count(ending: string): number {
    return this.answered.filter((path) => path.endsWith(ending)).length;
  }

  #take(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const foreign = this.#foreign;
    if (foreign) {
      incoming.resume();
      incoming.on("end", () => {
        this.answered.push(pathOf(incoming));
        foreign(outgoing, incoming, incoming.socket);
      });
      return;
    }
    this.#open.add(outgoing);
    this.passed.push(pathOf(incoming));
    const { method, url, headers } = incoming;
    const passed = request(this.#target + url, { method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      outgoing.flushHeaders();
      answer.pipe(outgoing);
      answer.on("error", () => outgoing.destroy());
    });
    passed.on("error", () => outgoing.destroy());
    outgoing.on("close", () => {
      this.#open.delete(outgoing);
      passed.destroy();
    });
    incoming.pipe(passed);
  }
}

const pathOf = ({ url = "" }: IncomingMessage): string => url.split("?")[0] ?? "";

export const startFront = (gateway: string): Promise<Front> => new Front(gateway).start();

const answer =
  (
    status: number,
    type: string | undefined,
    body: string,
    headers: Record<string, string> = {},
  ): ForeignAnswer =>
  (outgoing) =>
    void outgoing.writeHead(status, { ...(type && { "content-type": type }), ...headers }).end(body);

const problem = (status: number, code: string, more: object = {}) =>
  JSON.stringify({
    ...{ type: `urn:errand:error:${code}`, title: code, status, detail: code, code },
    ...{ category: "AUTH", retryable: false, recovery: "x", ...more },
  });
const PROBLEM = "application/problem+json";
const page = (words: string) => `<!doctype html><html><body><h1>${words}</h1></body></html>`;
const ANOTHER = "brk_another";
const elsewhere = { location: "http://127.0.0.1:9/login" };

/**
 * What ingresses, captive portals, proxies and other programs answer in a broker's place. Not 421: Node's fetch repeats the
 * request by itself, and at times neither answers nor fails; then the call's own time limit ends it.
 */
export const FOREIGN_ANSWERS: Readonly<Record<string, ForeignAnswer>> = {
  "200 with a page": answer(200, "text/html", page("Maintenance")),
  "200 with an empty body": answer(200, undefined, ""),
  "200 with empty JSON": answer(200, "application/json", "{}"),
  "200 with no leases": answer(200, "application/json", '{"leases":[]}'),
  "200 of another broker": answer(200, "application/json", '{"leases":[]}', { "errand-broker": ANOTHER }),
  "200 with an event stream": answer(200, "text/event-stream", "data: {}\n\n"),
  "204": answer(204, undefined, ""),
  "301": answer(301, "text/html", page("Moved"), elsewhere),
  "302 to a sign-in": answer(302, undefined, "", elsewhere),
  "303": answer(303, undefined, "", elsewhere),
  "304": answer(304, undefined, ""),
  "307": answer(307, undefined, "", elsewhere),
  "308": answer(308, undefined, "", elsewhere),
  "400 of a TLS port": answer(400, "text/html", page("The plain HTTP request was sent to HTTPS port")),
  "401 with a page": answer(401, "text/html", page("Sign in"), { "www-authenticate": "Basic" }),
  "401 like the broker's, without its id": answer(401, PROBLEM, problem(401, "unauthenticated")),
  "401 of another broker": answer(401, PROBLEM, problem(401, "unauthenticated", { broker_id: ANOTHER }), {
    "errand-broker": ANOTHER,
  }),
  "403 of a firewall": answer(403, "text/html", page("Blocked")),
  "403 like the broker's, without its id": answer(403, PROBLEM, problem(403, "forbidden")),
  "404 of an ingress": answer(404, "text/plain", "default backend - 404"),
  "404 of another broker": answer(404, PROBLEM, problem(404, "agent_unknown", { broker_id: ANOTHER })),
  "404 with another broker's lost lease": answer(
    404,
    PROBLEM,
    problem(404, "lease_unknown", { broker_id: ANOTHER }),
  ),
  "405": answer(405, undefined, "", { allow: "GET" }),
  "407": answer(407, "text/html", page("Proxy authentication"), { "proxy-authenticate": "Basic" }),
  "409 of another program": answer(409, "application/json", '{"code":"lease_lost"}'),
  "410": answer(410, "text/plain", "gone"),
  "413": answer(413, "text/html", page("Request Entity Too Large")),
  "422 of another program": answer(422, "application/json", '{"detail":[]}'),
  "429": answer(429, "text/plain", "slow down"),
  "431": answer(431, "text/plain", "too large"),
  "451": answer(451, "text/plain", "not here"),
  "500 with a page": answer(500, "text/html", page("Error")),
  "502": answer(502, "text/html", page("Bad Gateway")),
  "503 with escapes": answer(503, "text/plain", "\u001b[2J\u202edown"),
  "511 of a captive portal": answer(511, "text/html", page("Sign in to this network")),
  "599": answer(599, undefined, ""),
  "another protocol": (_outgoing, _incoming, socket) => void socket.end("SSH-2.0-OpenSSH_9.6\r\n"),
  "nothing, and the connection is closed": (_outgoing, _incoming, socket) => void socket.destroy(),
};
