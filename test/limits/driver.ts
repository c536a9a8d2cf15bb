/** What the drivers of bounds have in common. */
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Gateway, Poll } from "../../bench/gateway.ts";
import { until } from "../../bench/until.ts";

export interface Ground {
  readonly gateway: Gateway;
  readonly caller: string;
  readonly worker: Poll;
  /** Sends a request and reads no answer. */
  readonly send: (text: string) => Socket;
  readonly sockets: Set<Socket>;
}

export interface Driver {
  /** The driver's action, for the table. */
  readonly what: string;
  readonly drive: (ground: Ground) => Promise<void>;
  /** Of a driver that stores files. */
  readonly files?: {
    /** The most bytes of one principal. Default: the broker's own. */
    readonly principalBytes?: number;
    /** Before the measurement: what exists already, and the scripts that Redis has loaded. */
    readonly prepare?: (ground: Ground) => Promise<void>;
    /** What Redis has a row for, and how many of them there are. */
    readonly each?: { readonly of: string; readonly count: number };
  };
}

export const times = <T>(count: number, make: (n: number) => T): T[] =>
  Array.from({ length: count }, (_, n) => make(n));

/** Waits until the gateway has processed everything that was sent. */
export const settle = (gateway: Gateway) =>
  until(async () => {
    const before = (await gateway.usage()).cpu_us;
    await sleep(500);
    return (await gateway.usage()).cpu_us - before < 150_000;
  }, "a quiet gateway").catch(() => {});
