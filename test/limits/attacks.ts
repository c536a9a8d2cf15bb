/**
 * Attacks on a gateway, each from a token of its own, beside a victim that lists its delegations: `npm run limits --
 * attacks [--seconds N] [--rounds N] [NAME ...]`. Each round measures the victim alone, then beside each attack, then
 * beside all at once, on a gateway of its own. Prints the median of the rounds: the victim's p99, that against its quiet
 * value, and the gateway's highest memory. Fails if a gateway dies. Limit: the attackers share this process with the
 * victim, so their own work also delays it.
 */
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Gateway, type Poll } from "../../bench/gateway.ts";
import { closeStages, Stage } from "../../bench/stage.ts";
import { request } from "./drivers.ts";
import { SHAPES } from "./shapes.ts";

const MIB = 1024 * 1024;
const LARGE = "x".repeat(900_000);
const PAUSE_MS = 50;
const SETTLE_MS = 1_000;

interface Ground {
  readonly gateway: Gateway;
  readonly token: string;
  readonly worker: Poll;
  /** Opens a connection that ends with the attack. */
  readonly open: (text: string, options?: { readonly reads: boolean }) => void;
  readonly isOver: () => boolean;
}

type Attack = (ground: Ground) => Promise<void> | void;

const times = (count: number, run: () => void): void => {
  for (let n = 0; n < count; n += 1) run();
};

/** Sends these bodies one after the other, `at` at a time, until the attack is over. */
async function flood({ gateway, token, isOver }: Ground, words: string, at = 2): Promise<void> {
  const shapes = SHAPES.filter(({ name, as }) => name.startsWith(words) && as === "caller");
  const lane = async () => {
    for (let n = 0; !isOver(); n += 1) {
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

const ATTACKS: Readonly<Record<string, Attack>> = {
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

const percentile = (values: readonly number[], part: number): number =>
  [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * part))] ??
  Number.NaN;

/** How long the lists of the victim take, ms. */
async function victim(gateway: Gateway, token: string, until: number): Promise<number[]> {
  const took: number[] = [];
  while (performance.now() < until) {
    const began = performance.now();
    await gateway.call("GET", "/v1/delegations?limit=1", undefined, token).catch((error: unknown) => {
      process.stderr.write(`victim: ${String(error).slice(0, 120)}\n`);
    });
    took.push(performance.now() - began);
    await sleep(PAUSE_MS);
  }
  return took;
}

interface Result {
  readonly p99: number;
  readonly mib: number;
}

async function round(names: readonly string[], seconds: number): Promise<Result> {
  const stage = await Stage.open();
  await stage.fsync("everysec");
  const gateway = await Gateway.start(stage);
  const sockets = new Set<ReturnType<typeof connect>>();
  let over = false;
  try {
    const { hostname, port } = new URL(gateway.url);
    const open: Ground["open"] = (text, { reads } = { reads: false }) => {
      const socket = connect(Number(port), hostname);
      sockets.add(socket);
      socket.on("error", () => {}).once("close", () => sockets.delete(socket));
      if (reads) socket.resume();
      else socket.pause();
      socket.write(text);
    };
    const token = await gateway.token("caller:victim");
    const workers = await gateway.agents(Math.max(1, names.length), "attacked");
    const running = names.map(async (name, at) => {
      const worker = workers[at];
      if (!worker) return;
      const own = await gateway.token(`caller:attacker-${at}`);
      await ATTACKS[name]?.({ gateway, token: own, worker, open, isOver: () => over });
    });
    const failed = Promise.all(running).catch((error: unknown) => {
      process.stderr.write(`attack: ${String(error).slice(0, 200)}\n`);
    });
    await sleep(SETTLE_MS);
    let most = 0;
    const look = setInterval(
      () =>
        void gateway
          .usage()
          .then(({ rss }) => {
            most = Math.max(most, rss);
          })
          .catch(() => {}),
      200,
    );
    const took = await victim(gateway, token, performance.now() + seconds * 1_000);
    clearInterval(look);
    over = true;
    for (const socket of sockets) socket.destroy();
    await failed;
    most = Math.max(most, (await gateway.usage()).rss);
    return { p99: percentile(took, 0.99), mib: most / MIB };
  } finally {
    over = true;
    for (const socket of sockets) socket.destroy();
    await gateway.stop();
    await stage.close();
  }
}

function numberAfter(args: string[], flag: string, otherwise: number): number {
  const at = args.indexOf(flag);
  if (at === -1) return otherwise;
  const [, value] = args.splice(at, 2);
  if (!Number(value)) throw new Error(`${flag} needs a number.`);
  return Number(value);
}

async function main(args: string[]): Promise<void> {
  const seconds = numberAfter(args, "--seconds", 5);
  const rounds = numberAfter(args, "--rounds", 5);
  for (const name of args) if (!ATTACKS[name]) throw new Error(`There is no attack '${name}'.`);
  const all = args.length > 0 ? args : Object.keys(ATTACKS);
  const rows: readonly (readonly [string, readonly string[]])[] = [
    ["quiet", []],
    ...all.map((name): [string, string[]] => [name, [name]]),
    ["all at once", all],
  ];
  const results = new Map<string, { readonly result: Result; readonly ratio: number }[]>();
  for (let n = 0; n < rounds; n += 1) {
    let quiet = Number.NaN;
    for (const [name, names] of rows) {
      const result = await round(names, seconds);
      if (names.length === 0) quiet = result.p99;
      results.set(name, [...(results.get(name) ?? []), { result, ratio: result.p99 / quiet }]);
    }
  }
  process.stdout.write(
    "| attack | victim's p99, ms | of its quiet value | gateway, MiB at most |\n| --- | --- | --- | --- |\n",
  );
  for (const [name, found] of results) {
    const median = (of: (one: (typeof found)[number]) => number) => percentile(found.map(of), 0.5);
    const p99 = median(({ result }) => result.p99).toFixed(0);
    const ratio = median((one) => one.ratio).toFixed(1);
    const mib = Math.max(...found.map(({ result }) => result.mib)).toFixed(0);
    process.stdout.write(`| ${name} | ${p99} | ${ratio} | ${mib} |\n`);
  }
}

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => void closeStages().finally(() => process.exit(130)));
}
await main(process.argv.slice(2));
