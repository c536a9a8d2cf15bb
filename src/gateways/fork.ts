/**
 * Starts gateways with node:cluster: this process accepts the connections and deals them out in turn. (If all gateways
 * shared a listening socket, the kernel would prefer a few of them.) A gateway's log comes through a pipe, so that one
 * process writes all lines.
 */
import type { Serializable } from "node:child_process";
import cluster, { type Worker } from "node:cluster";
import { createInterface } from "node:readline";
import * as z from "zod";
import type { ChildEnd, Forked } from "./child.ts";
import type { Channel } from "./siblings.ts";

/** `line` is called with each line that a gateway writes to its stderr. */
export function forkWith(line: (text: string) => void): () => Forked {
  // Otherwise an environment variable could choose another policy.
  cluster.schedulingPolicy = cluster.SCHED_RR;
  cluster.setupPrimary({ stdio: ["ignore", "inherit", "pipe", "ipc"] });
  return () => {
    let worker: Worker;
    try {
      worker = cluster.fork();
    } catch (error) {
      return notForked(error, line);
    }
    // Without a pid the process could not be started. Other errors are orders to a gateway that has just died.
    worker.process.on("error", (error) => worker.process.pid === undefined && line(String(error)));
    closeUndelivered(worker);
    if (worker.process.stderr) createInterface({ input: worker.process.stderr }).on("line", line);
    return toForked(worker);
  };
}

/** The parts used here of node:cluster's message that deals out a connection, and of the gateway's answer. */
const dealtSchema = z.object({ cmd: z.literal("NODE_CLUSTER"), act: z.literal("newconn"), seq: z.number() });
const answerSchema = z.object({ cmd: z.literal("NODE_CLUSTER"), ack: z.number() });

const isClosable = (handle: unknown): handle is { close: () => void } =>
  typeof handle === "object" && handle !== null && "close" in handle && typeof handle.close === "function";

/**
 * A connection is open in this process, too, until the gateway that it was dealt to has answered. If the gateway dies
 * first, node:cluster keeps it open, and its client would wait for ever. Limit: reads messages of node:cluster that are not
 * documented; a test kills a gateway that has not answered.
 */
function closeUndelivered(worker: Worker): void {
  const gateway = worker.process;
  const undelivered = new Map<number, { close: () => void }>();
  const send = gateway.send;
  gateway.send = (...args: [message: Serializable]) => {
    const [message, handle]: readonly unknown[] = args;
    const { data: dealt } = dealtSchema.safeParse(message);
    if (dealt && isClosable(handle)) undelivered.set(dealt.seq, handle);
    const isSent: boolean = Reflect.apply(send, gateway, args);
    return isSent;
  };
  gateway.on("internalMessage", (message: unknown) => {
    const { data: answer } = answerSchema.safeParse(message);
    if (answer) undelivered.delete(answer.ack);
  });
  // Every answer was read by then. Node emits no "disconnect" while a connection is undelivered, so node:cluster still
  // takes the gateway for a live one.
  gateway.once("close", () => {
    for (const handle of undelivered.values()) handle.close();
    undelivered.clear();
    worker.disconnect();
  });
}

function toForked(worker: Worker): Forked {
  worker.on("error", () => {});
  return {
    pid: worker.process.pid ?? 0,
    send: (order) => {
      if (worker.isConnected()) worker.process.send(order, () => {});
    },
    kill: () => worker.process.kill("SIGKILL"),
    onMessage: (receive) => worker.on("message", receive),
    onEnd: (callback) =>
      worker.process.once("close", (code, signal) =>
        callback(worker.process.pid === undefined ? NOT_FORKED : { code, signal }),
      ),
  };
}

/**
 * No process was started, for example for lack of memory. That counts as a gateway that ended, so it is tried again unless
 * it is the first; its exit code asks for another try of the whole start.
 */
const NOT_FORKED: ChildEnd = { code: 75, signal: null };

function notForked(error: unknown, line: (text: string) => void): Forked {
  line(String(error));
  const nothing = () => {};
  return {
    pid: 0,
    send: nothing,
    kill: nothing,
    onMessage: nothing,
    onEnd: (callback) => void setImmediate(callback, NOT_FORKED),
  };
}

/** The connection of a gateway to the supervisor that started it; null in any other process. */
export function channelToSupervisor(): Channel | null {
  const { worker } = cluster;
  if (!cluster.isWorker || !worker) return null;
  return {
    send: (report) => {
      if (process.connected) process.send?.(report, undefined, undefined, () => {});
    },
    onMessage: (receive) => process.on("message", receive),
    close: () =>
      new Promise((resolve) => {
        if (!process.connected) resolve();
        process.once("disconnect", resolve);
        // The supervisor answers before it closes, so everything that it sent before has arrived: connections that it dealt
        // out just before it learned that this gateway stops are returned.
        worker.disconnect();
      }),
    onClose: (callback) => {
      worker.once("disconnect", () => {
        // Otherwise Node would end this process before its requests are finished.
        worker.exitedAfterDisconnect = true;
        callback();
      });
    },
  };
}
