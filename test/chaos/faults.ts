/**
 * The faults of the nemesis, as data: their frequency, target, begin and end. Limit: one fault at a time on one
 * target; random numbers are drawn elsewhere.
 */
import { Shards } from "../../src/redis/shards.ts";
import type { Fault as BadLinkFault } from "../support/bad-link.ts";
import type { Child } from "./child.ts";
import type { Stage } from "./stage.ts";

/** Waits for the duration of the fault, or until the run is stopped. */
type Last = () => Promise<void>;

/** By so much a clock is wrong. */
export const CLOCK_FAULT_MS = 300_000;

interface Fault {
  readonly weight: number;
  /** The shortest and longest duration, in seconds. */
  readonly lasts: readonly [number, number];
  readonly targets: (stage: Stage) => readonly string[];
  readonly run: (stage: Stage, target: string, last: Last) => Promise<void>;
}

const gatewayNames = (stage: Stage): string[] => stage.gateways.map(({ name }) => name);
const gateway = (stage: Stage, name: string) => {
  const found = stage.gateways.find((one) => one.name === name);
  if (!found) throw new Error(`no ${name}`);
  return found;
};
const workerNames =
  (...roles: readonly string[]) =>
  (stage: Stage): string[] =>
    stage.workers.filter(({ role }) => roles.includes(role)).map(({ child }) => child.name);
const child = (stage: Stage, name: string): Child => {
  const found = stage.workers.find((one) => one.child.name === name)?.child ?? gateway(stage, name).child;
  return found;
};
const nodeNames = (stage: Stage): string[] => stage.redis.nodes.map(({ name }) => name);
const node = (stage: Stage, name: string) => {
  const found = stage.redis.nodes.find((one) => one.name === name);
  if (!found) throw new Error(`no ${name}`);
  return found;
};
/** Gateways whose way to Redis can be bad. */
const linkedNames = (stage: Stage): string[] =>
  stage.gateways.filter(({ link }) => link !== null).map(({ name }) => name);
const SHARD = "shard-";
const shardNames = (stage: Stage): string[] =>
  stage.cluster ? Array.from({ length: stage.options.shards }, (_, at) => `${SHARD}${at}`) : [];
/** A key of that shard. */
const shardKey = (stage: Stage, name: string): string =>
  new Shards(stage.options.shards).at(Number(name.slice(SHARD.length))).events;

const stopped: Fault["run"] = async (stage, target, last) => {
  child(stage, target).signal("SIGSTOP");
  await last();
  child(stage, target).signal("SIGCONT");
};
const killed: Fault["run"] = async (stage, target) => {
  await child(stage, target).kill();
};
const linked =
  (kind: BadLinkFault): Fault["run"] =>
  async (stage, target, last) => {
    const { link } = gateway(stage, target);
    await link?.fault(kind);
    await last();
    await link?.heal();
  };
const clock =
  (ms: number): Fault["run"] =>
  async (stage, target, last) => {
    gateway(stage, target).child.send(`clock ${ms}`);
    await last();
    gateway(stage, target).child.send("clock 0");
  };

const SHORT = [0, 0] as const;

/** Gateways of several processes. */
const severalNames = (stage: Stage): string[] => (stage.options.workers > 1 ? gatewayNames(stage) : []);

/** A signal to one of the processes under the supervisor. */
const oneProcess =
  (signal: NodeJS.Signals, after?: NodeJS.Signals): Fault["run"] =>
  async (stage, target, last) => {
    const pids = await stage.processesOf(gateway(stage, target));
    const pid = pids[Math.floor(Math.random() * pids.length)];
    if (pid === undefined) return;
    const send = (name: NodeJS.Signals) => {
      try {
        process.kill(pid, name);
      } catch {
        // It has ended meanwhile.
      }
    };
    send(signal);
    await last();
    if (after) send(after);
  };

export const FAULTS = {
  "gateway-kill": {
    weight: 8,
    lasts: SHORT,
    targets: gatewayNames,
    run: async (stage, target) => {
      await killed(stage, target, async () => undefined);
      await gateway(stage, target).child.ready();
    },
  },
  "gateway-stop": { weight: 5, lasts: [1, 8], targets: gatewayNames, run: stopped },
  "gateway-end": {
    weight: 5,
    lasts: SHORT,
    targets: gatewayNames,
    run: async (stage, target) => {
      await gateway(stage, target).child.terminate();
      await gateway(stage, target).child.ready();
    },
  },
  "gateways-roll": {
    weight: 2,
    lasts: SHORT,
    targets: () => ["all gateways"],
    run: async (stage) => {
      for (const { child } of stage.gateways) {
        await child.terminate();
        await child.ready();
      }
    },
  },
  // Longer than a lease. The supervisor of several processes would not take them along.
  "gateways-stop": {
    weight: 3,
    lasts: [4, 9],
    targets: (stage) => (stage.options.workers > 1 ? [] : ["all gateways"]),
    run: async (stage, _target, last) => {
      for (const { child } of stage.gateways) child.signal("SIGSTOP");
      const from = Date.now() + 200;
      await last();
      const to = Date.now();
      for (const { child } of stage.gateways) child.signal("SIGCONT");
      stage.recorder.note({ row: "outage", from, to });
    },
  },
  "process-kill": { weight: 8, lasts: SHORT, targets: severalNames, run: oneProcess("SIGKILL") },
  "process-stop": { weight: 3, lasts: [1, 8], targets: severalNames, run: oneProcess("SIGSTOP", "SIGCONT") },
  "process-end": { weight: 3, lasts: SHORT, targets: severalNames, run: oneProcess("SIGTERM") },
  "processes-roll": {
    weight: 6,
    lasts: SHORT,
    targets: severalNames,
    run: async (stage, target) => gateway(stage, target).child.signal("SIGHUP"),
  },
  "redis-kill": {
    weight: 6,
    lasts: [0, 2],
    targets: nodeNames,
    run: async (stage, target, last) => {
      await node(stage, target).end("SIGKILL");
      await last();
      await node(stage, target).start();
    },
  },
  "redis-stop": {
    weight: 4,
    lasts: [1, 10],
    targets: nodeNames,
    run: async (stage, target, last) => {
      node(stage, target).signal("SIGSTOP");
      await last();
      node(stage, target).signal("SIGCONT");
    },
  },
  "redis-end": {
    weight: 2,
    lasts: [0, 2],
    targets: nodeNames,
    run: async (stage, target, last) => {
      await node(stage, target).end("SIGTERM");
      await last();
      await node(stage, target).start();
    },
  },
  "slot-move": {
    weight: 6,
    lasts: SHORT,
    targets: shardNames,
    run: async (stage, target) => stage.cluster?.moveSlot(shardKey(stage, target)),
  },
  "master-hand-over": {
    weight: 6,
    lasts: SHORT,
    targets: shardNames,
    run: async (stage, target) => stage.cluster?.handOver(shardKey(stage, target)),
  },
  "link-refuse": { weight: 4, lasts: [1, 8], targets: linkedNames, run: linked("refuse") },
  "link-hold": { weight: 4, lasts: [1, 15], targets: linkedNames, run: linked("hold") },
  "link-swallow": { weight: 4, lasts: [1, 15], targets: linkedNames, run: linked("swallow") },
  "link-swallow-answers": { weight: 4, lasts: [1, 8], targets: linkedNames, run: linked("swallow-answers") },
  "link-delay": { weight: 4, lasts: [2, 10], targets: linkedNames, run: linked("delay") },
  "link-cut": {
    weight: 4,
    lasts: SHORT,
    targets: linkedNames,
    run: async (stage, target) => gateway(stage, target).link?.cut(),
  },
  "link-tear": {
    weight: 4,
    lasts: SHORT,
    targets: linkedNames,
    run: async (stage, target) => gateway(stage, target).link?.tear(),
  },
  "clock-ahead": { weight: 2, lasts: [5, 20], targets: gatewayNames, run: clock(CLOCK_FAULT_MS) },
  "clock-behind": { weight: 2, lasts: [5, 20], targets: gatewayNames, run: clock(-CLOCK_FAULT_MS) },
  "worker-kill": { weight: 6, lasts: SHORT, targets: workerNames("agent", "library", "mcp"), run: killed },
  "worker-stop": { weight: 5, lasts: [2, 9], targets: workerNames("agent", "library", "mcp"), run: stopped },
  "worker-end": {
    weight: 3,
    lasts: SHORT,
    targets: workerNames("agent", "library", "mcp"),
    run: async (stage, target) => child(stage, target).terminate(),
  },
  "subscriber-kill": { weight: 4, lasts: SHORT, targets: workerNames("subscriber"), run: killed },
  "subscriber-stop": { weight: 3, lasts: [1, 10], targets: workerNames("subscriber"), run: stopped },
  "delegator-kill": {
    weight: 3,
    lasts: SHORT,
    targets: workerNames("delegator", "a2a", "agui", "person"),
    run: killed,
  },
  "delegator-stop": {
    weight: 2,
    lasts: [1, 6],
    targets: workerNames("delegator", "a2a", "agui", "person"),
    run: stopped,
  },
  "receiver-kill": { weight: 2, lasts: SHORT, targets: workerNames("receiver"), run: killed },
  "receiver-stop": { weight: 1, lasts: [1, 6], targets: workerNames("receiver"), run: stopped },
  "server-kill": { weight: 2, lasts: SHORT, targets: workerNames("server"), run: killed },
  "server-stop": { weight: 1, lasts: [1, 6], targets: workerNames("server"), run: stopped },
} as const satisfies Record<string, Fault>;

export type FaultName = keyof typeof FAULTS;
export const FAULT_NAMES = Object.keys(FAULTS).filter((name): name is FaultName => name in FAULTS);
