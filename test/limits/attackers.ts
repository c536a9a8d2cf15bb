/** The attackers of attacks.ts, in a process of their own, which attacks until it is ended. */
import { connect } from "node:net";
import { type AttackName, NAMES, type Order, ordersSchema } from "./attack-names.ts";
import { request } from "./drivers.ts";
import { SHAPES } from "./shapes.ts";

const LARGE = "x".repeat(900_000);

interface Attacked {
  readonly url: string;
  readonly call: (method: string, path: string, body: unknown, token: string) => Promise<unknown>;
}

interface Ground {
  readonly gateway: Attacked;
  readonly token: string;
  readonly worker: Order["worker"];
  /** Opens a connection that ends with the attack. */
  readonly open: (text: string, options?: { readonly reads: boolean }) => void;
}

type Attack = (ground: Ground) => Promise<void> | void;

const times = (count: number, run: () => void): void => {
  for (let n = 0; n < count; n += 1) run();
};

/** Sends these bodies one after the other, `at` at a time, until this process ends. */
async function flood({ gateway, token }: Ground, words: string, at = 2): Promise<void> {
  const shapes = SHAPES.filter(({ name, as }) => name.startsWith(words) && as === "caller");
  const lane = async () => {
    for (let n = 0; ; n += 1) {
      const shape = shapes[n % shapes.length];
      if (!shape) return;
      await fetch(gateway.url + shape.path.replace("{agent}", "attacked-0"), {
        method: "POST",
        headers: { ...shape.headers, authorization: `Bearer ${token}`, "content-type": "application/json" },
        body: JSON.stringify(shape.body(19_000)),
        signal: AbortSignal.timeout(5_000),
      }).then(
        (answer) => answer.body?.cancel(),
        () => {},
      );
    }
  };
  await Promise.all(Array.from({ length: at }, lane));
}

async function largeDelegations({ gateway, token, worker }: Ground): Promise<void> {
  for (let n = 0; n < 5; n += 1) {
    await gateway.call("POST", "/v1/delegations", { target: worker.agent, task: LARGE }, token);
  }
}

const replay = (token: string) =>
  request("GET", "/v1/events?after=0", token, "", "accept: text/event-stream\r\n");

const ATTACKS: Readonly<Record<AttackName, Attack>> = {
  "pipelined headers": ({ worker, open }) => {
    const poll = request("POST", `/v1/agents/${worker.agent}/leases`, worker.token, '{"wait_seconds":60}');
    const next = `GET /v1/status HTTP/1.1\r\nhost: localhost\r\nx-junk: ${"j".repeat(15_000)}\r\n\r\n`;
    times(200, () => open(poll + next.repeat(60)));
  },
  "replays that are read": async (ground) => {
    await largeDelegations(ground);
    times(100, () => ground.open(replay(ground.token), { reads: true }));
  },
  "replays that are not read": async (ground) => {
    await largeDelegations(ground);
    times(300, () => ground.open(replay(ground.token)));
  },
  "many members over MCP": (ground) => flood(ground, "MCP"),
  "many members over A2A": (ground) => flood(ground, "A2A"),
  "many members over REST": (ground) => flood(ground, "delegate"),
  "answers of MCP that are not read": ({ token, open }) => {
    const calls = Array.from({ length: 100 }, (_, id) => ({ jsonrpc: "2.0", id, method: "tools/list" }));
    const meta = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "m", version: "1" } };
    const accept = "accept: application/json, text/event-stream\r\n";
    const initialize = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params: meta });
    times(100, () =>
      open(
        request("POST", "/mcp", token, initialize, accept) +
          request("POST", "/mcp", token, JSON.stringify(calls), accept),
      ),
    );
  },
  "half a head, without a token": ({ open }) => {
    const lines = "a: b\r\n".repeat(1_990);
    times(2_000, () => open(`GET /healthz HTTP/1.1\r\nhost: localhost\r\n${lines}`));
  },
  "documentation, without a token": ({ open }) => {
    const text = "GET /docs HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(60);
    times(30, () => open(text, { reads: true }));
  },
  "held heartbeats on one lease": async ({ gateway, token, worker, open }) => {
    await gateway.call("POST", "/v1/delegations", { target: worker.agent, task: "x" }, token);
    const answer = await gateway.call(
      "POST",
      `/v1/agents/${worker.agent}/leases`,
      { wait_seconds: 5 },
      worker.token,
    );
    const [, lease = ""] = /"lease_id":"(\w+)"/.exec(JSON.stringify(answer)) ?? [];
    times(1_000, () =>
      open(request("POST", `/v1/leases/${lease}/heartbeat`, worker.token, '{"wait_seconds":60}')),
    );
  },
};

function attacked(url: string): Attacked {
  return {
    url,
    call: async (method, path, body, token) => {
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
      const answer = await fetch(url + path, { method, headers, body: JSON.stringify(body) });
      return answer.json();
    },
  };
}

process.once("disconnect", () => process.exit());
process.once("message", async (message) => {
  const { url, orders } = ordersSchema.parse(message);
  const { hostname, port } = new URL(url);
  const open: Ground["open"] = (text, { reads } = { reads: false }) => {
    const socket = connect(Number(port), hostname);
    socket.on("error", () => {});
    if (reads) socket.resume();
    else socket.pause();
    socket.write(text);
  };
  for (const { name, token, worker } of orders) {
    const known = NAMES.find((one) => one === name);
    if (!known) continue;
    Promise.resolve(ATTACKS[known]({ gateway: attacked(url), token, worker, open })).catch(
      (error: unknown) => {
        process.stderr.write(`attack: ${String(error).slice(0, 200)}\n`);
      },
    );
  }
  process.send?.("begun");
});
