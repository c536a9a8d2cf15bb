/**
 * Drives the bounds of a gateway to their limit, to measure what they cost. Limit: one gateway; the operator's own
 * requests are few.
 */
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import type { Gateway } from "../../bench/gateway.ts";
import { until } from "../../bench/until.ts";
import { LIMITS, type LimitName } from "../../src/schema/limits.ts";
import { type Driver, type Ground, settle, times } from "./driver.ts";
import { FILE_DRIVERS } from "./file-drivers.ts";

const MIB = 1024 * 1024;
const LARGE = "x".repeat(1_000_000);

export function request(method: string, path: string, token: string, body = "", more = ""): string {
  const length = body === "" ? "" : `content-type: application/json\r\ncontent-length: ${body.length}\r\n`;
  return `${method} ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${token}\r\n${more}${length}\r\n${body}`;
}

export function sender(url: string, sockets: Set<Socket>): (text: string) => Socket {
  const { hostname, port } = new URL(url);
  return (text) => {
    const socket = connect(Number(port), hostname).pause();
    sockets.add(socket);
    socket.on("error", () => {}).once("close", () => sockets.delete(socket));
    socket.write(text);
    return socket;
  };
}

const task = (agent: string, text: string) => JSON.stringify({ target: agent, task: text });
/** Calls to the gateway, repeated while it answers 429 or Redis is too busy to answer in time. */
function patient(gateway: Gateway): Gateway["call"] {
  return async (...args) => {
    for (let left = 10; ; left -= 1) {
      try {
        return await gateway.call(...args);
      } catch (error) {
        if (left === 0 || !(error instanceof Error) || !/: (?:429|503) /.test(error.message)) throw error;
        await sleep(500);
      }
    }
  };
}

const leasesSchema = z.object({ leases: z.array(z.object({ lease_id: z.string() })) });

async function leased({ gateway, caller, worker: { agent, token } }: Ground): Promise<string> {
  await patient(gateway)("POST", "/v1/delegations", { target: agent, task: "x" }, caller);
  const answer = await patient(gateway)("POST", `/v1/agents/${agent}/leases`, { wait_seconds: 10 }, token);
  return leasesSchema.parse(answer).leases[0]?.lease_id ?? "";
}

async function openStreams(
  { gateway, caller, send }: Pick<Ground, "gateway" | "caller" | "send">,
  count: number,
): Promise<void> {
  for (let open = 0; open < count; ) {
    const next = Math.min(count, open + 50);
    for (; open < next; open += 1) {
      send(request("GET", "/v1/events", caller, "", "accept: text/event-stream\r\n"));
    }
    await until(async () => (await gateway.streams()) === next, "the streams");
  }
}

/** The bounds that cost memory; tests named in `drivers.test.ts` drive all others. */
export const DRIVERS: Partial<Record<LimitName, Driver>> = {
  ...FILE_DRIVERS,
  connections: {
    what: "2 000 connections that send half a head",
    async drive({ gateway, send }) {
      for (let n = 0; n < 2_000; n += 1) send("GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-half: ");
      await settle(gateway);
    },
  },
  request_bytes: {
    what: "64 requests of 1 MiB, of which half is sent; 32 have room",
    async drive({ gateway, caller, send }) {
      const head = request("POST", "/v1/delegations", caller, "x".repeat(MIB)).slice(0, -MIB / 2);
      for (let n = 0; n < 64; n += 1) send(head);
      await settle(gateway);
    },
  },
  body_bytes: {
    what: "60 submits of 1 MB that wait for their result; 33 have room",
    async drive({ gateway, caller, worker, send }) {
      const text = request(
        "POST",
        "/v1/delegations",
        caller,
        task(worker.agent, LARGE),
        "prefer: wait=60\r\n",
      );
      for (let n = 0; n < 60; n += 1) send(text);
      await settle(gateway);
    },
  },
  requests: {
    what: "2 000 submits at once",
    async drive({ gateway, caller, worker, send }) {
      const text = request("POST", "/v1/delegations", caller, task(worker.agent, "x"));
      for (let n = 0; n < 2_000; n += 1) send(text);
      await settle(gateway);
    },
  },
  polls: {
    what: "1 000 parked polls",
    async drive({ gateway, worker: { agent, token }, send }) {
      const text = request("POST", `/v1/agents/${agent}/leases`, token, '{"wait_seconds":60}');
      for (let n = 0; n < LIMITS.polls.value; n += 1) send(text);
      await until(async () => (await gateway.usage()).parked === LIMITS.polls.value, "the polls");
    },
  },
  streams: {
    what: "1 000 event streams at rest",
    async drive({ gateway, caller, send }) {
      await openStreams({ gateway, caller, send }, LIMITS.streams.value);
    },
  },
  buffered_events: {
    what: "200 event streams that are not read, and 8 events of 1 MB",
    async drive(ground) {
      const { gateway, caller, worker, send } = ground;
      await openStreams({ gateway, caller, send }, 200);
      for (let n = 0; n < 8; n += 1) {
        const lease = await leased(ground);
        const artifact = { artifactId: "a", parts: [{ text: LARGE }] };
        await patient(gateway)("POST", `/v1/leases/${lease}/artifacts`, { artifact }, worker.token);
        await patient(gateway)(
          "POST",
          `/v1/leases/${lease}/reply`,
          { state: "completed", text: "y" },
          worker.token,
        );
      }
      await settle(gateway);
    },
  },
  unread_bytes: {
    what: "80 lists of 5 MB that are not read",
    async drive({ gateway, caller, worker, send }) {
      for (let n = 0; n < 5; n += 1) {
        await patient(gateway)("POST", "/v1/delegations", { target: worker.agent, task: LARGE }, caller);
      }
      for (let n = 0; n < 80; n += 1) send(request("GET", "/v1/delegations?limit=5", caller));
      await settle(gateway);
    },
  },
  reads_waiting: {
    what: "1 000 lists at once, all read",
    async drive({ gateway, caller, send }) {
      for (const socket of times(1_000, () => send(request("GET", "/v1/delegations?limit=5", caller)))) {
        socket.resume();
      }
      await settle(gateway);
    },
  },
  pipelined: {
    what: "200 connections with 64 requests each for the API description, not read",
    async drive({ gateway, caller, send }) {
      const text = request("GET", "/openapi.json", caller).repeat(LIMITS.pipelined.value);
      for (let n = 0; n < 200; n += 1) send(text);
      await settle(gateway);
    },
  },
  header_bytes: {
    what: "400 connections whose request waits, with 63 requests with 700 short headers each behind it",
    async drive({ gateway, worker, send }) {
      const poll = request("POST", `/v1/agents/${worker.agent}/leases`, worker.token, '{"wait_seconds":60}');
      const headers = times(700, (n) => `x${n}: 12345678\r\n`).join("");
      const next = `GET /v1/status HTTP/1.1\r\nhost: localhost\r\n${headers}\r\n`;
      for (let n = 0; n < 400; n += 1) send(poll + next.repeat(63));
      await settle(gateway);
    },
  },
  delegation_bytes: {
    what: "artifacts of one delegation up to 3 MiB",
    async drive(ground) {
      const lease = await leased(ground);
      for (let n = 0; n < 3; n += 1) {
        const artifact = { artifactId: `a${n}`, parts: [{ text: LARGE }] };
        await patient(ground.gateway)(
          "POST",
          `/v1/leases/${lease}/artifacts`,
          { artifact },
          ground.worker.token,
        );
      }
    },
  },
  event_bytes: {
    what: "progress of 4 kB until it is dropped",
    async drive(ground) {
      const lease = await leased(ground);
      const progress = { message: "x".repeat(4_000) };
      for (let n = 0; n < 300; n += 1) {
        await patient(ground.gateway)(
          "POST",
          `/v1/leases/${lease}/heartbeat`,
          { progress },
          ground.worker.token,
        );
      }
    },
  },
};
