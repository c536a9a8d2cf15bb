/**
 * Starts gateways with node:cluster: this process accepts the connections and deals them out in turn. (A listening socket
 * shared by all would be left to the kernel, which prefers a few of them.) A gateway's log comes through a pipe, so that
 * there is one writer and no mixed lines.
 */
import cluster, { type Worker } from "node:cluster";
import { createInterface } from "node:readline";
import type { Forked } from "./child.ts";
import type { Channel } from "./siblings.ts";

/** `line` is called with each line that a gateway writes to its stderr. */
export function forkWith(line: (text: string) => void): () => Forked {
  // Otherwise an environment variable could choose another policy.
  cluster.schedulingPolicy = cluster.SCHED_RR;
  cluster.setupPrimary({ stdio: ["ignore", "inherit", "pipe", "ipc"] });
  return () => {
    const worker = cluster.fork();
    if (worker.process.stderr) createInterface({ input: worker.process.stderr }).on("line", line);
    return toForked(worker);
  };
}

function toForked(worker: Worker): Forked {
  // An order to a gateway that has just died is lost.
  worker.on("error", () => {});
  worker.process.on("error", () => {});
  return {
    pid: worker.process.pid ?? 0,
    send: (order) => {
      if (worker.isConnected()) worker.process.send(order, () => {});
    },
    kill: () => worker.process.kill("SIGKILL"),
    onMessage: (receive) => worker.on("message", receive),
    onEnd: (callback) => worker.process.once("close", (code, signal) => callback({ code, signal })),
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
    onClose: (callback) => {
      worker.once("disconnect", () => {
        // Otherwise Node would end this process before its requests are finished.
        worker.exitedAfterDisconnect = true;
        callback();
      });
    },
  };
}
