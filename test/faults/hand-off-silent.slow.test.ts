import { fork } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { client, OPERATOR, startBroker } from "../support/broker.ts";
import { checkHistory, eventsOf } from "../support/history.ts";
import { allowStalls } from "../support/stalls.ts";
import { until } from "../support/until.ts";

type Api = ReturnType<typeof client>;

const ROUNDS = 200;
const PATIENCE_MS = 300_000;
const numbered = (count: number) => Array.from({ length: count }, (_, n) => n);

/** A poll on its own socket, which the test can cut. */
function rawPoll(port: number, agent: string) {
  const socket = connect(port, "127.0.0.1");
  const body = '{"wait_seconds":60}';
  socket.on("error", () => {});
  socket.write(
    `POST /v1/agents/${agent}/leases HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${OPERATOR}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  return socket;
}

/** The next poll gets the work as if nobody had had it; returns how long that took. */
async function takeNext(api: Api, agent: string, id: string): Promise<number> {
  const askedAt = performance.now();
  const { status, body } = await api.lease(agent, { wait_seconds: 10, worker_id: "next" });
  const took = performance.now() - askedAt;
  expect(status).toBe(200);
  expect(body.leases).toHaveLength(1);
  expect(body.leases[0]).toMatchObject({ attempt: 1, delegation: { id } });
  expect((await api.reply(body.leases[0].lease_id)).body.outcome).toBe("matched");
  return took;
}

test(
  "a poll cut while idle, then work, 200 times: the next poll has it within 1 s, attempt 1",
  async () => {
    const AGENTS = 20;
    const withStalls = allowStalls();
    const { url, gateway } = await startBroker();
    const api = client(url);
    const cuts = ["destroy", "resetAndDestroy", "end"] as const;
    const round = async (agent: string, n: number) => {
      const waiting = () => gateway.broker.handoff.polls.count(agent);
      const socket = rawPoll(gateway.port, agent);
      await until(() => waiting() === 1);
      socket[cuts[n % cuts.length] ?? "destroy"]();
      // Sometimes the gateway notices before the work arrives, sometimes not.
      if (n % 2 === 0) await until(() => waiting() === 0);
      const { id } = (await api.delegate(agent)).body;
      const took = await takeNext(api, agent, id);
      checkHistory(await eventsOf(api, id), "finished");
      return took;
    };
    const times = numbered(AGENTS).map(async (n) => {
      const agent = `agent-${n}`;
      await api.agent(agent);
      const took: number[] = [];
      for (const i of numbered(ROUNDS / AGENTS)) took.push(await round(agent, n + i));
      return took;
    });
    const took = (await Promise.all(times)).flat();
    expect(took).toHaveLength(ROUNDS);
    expect(Math.max(...took)).toBeLessThan(withStalls(1_000));
  },
  PATIENCE_MS,
);

test(
  "a poller stopped as the work arrives, 200 times: the next has it within the confirm time + 1 s, attempt 1",
  async () => {
    const PROCESSES = 2;
    const AGENTS = 10;
    const CONFIRM_MS = 1_000;
    const withStalls = allowStalls();
    const { url, gateway } = await startBroker({ sweepEveryMs: 250 });
    const api = client(url);

    const rounds = async (n: number) => {
      const agents = numbered(AGENTS).map((agent) => `agent-${n}-${agent}`);
      for (const agent of agents) await api.agent(agent);
      const script = fileURLToPath(new URL("../support/child-poller.mjs", import.meta.url));
      const child = fork(script, [url, OPERATOR, agents.join(",")]);
      onTestFinished(() => void child.kill("SIGKILL"));
      const took: number[] = [];
      for (const _ of numbered(ROUNDS / PROCESSES / AGENTS)) {
        child.send("poll");
        await until(() => agents.every((agent) => gateway.broker.handoff.polls.count(agent) === 1));
        child.kill("SIGSTOP");
        const made = agents.map(async (agent) => {
          const { id } = (await api.delegate(agent)).body;
          // The stopped process has it: its kernel received the answer. The lease itself may have ended already.
          await until(async () => (await eventsOf(api, id)).some(({ status }) => status === "leased"));
          took.push(await takeNext(api, agent, id));
          const events = await eventsOf(api, id);
          checkHistory(events, "finished");
          const statuses = events.map(({ status }) => status);
          expect(statuses).toEqual(["queued", "leased", "released", "leased", undefined]);
        });
        await Promise.all(made);
        child.kill("SIGCONT");
        const [late] = await once(child, "message");
        expect(late).toEqual(agents.map(() => ({ status: 409, reason: "released" })));
      }
      return took;
    };
    const took = (await Promise.all(numbered(PROCESSES).map(rounds))).flat();
    expect(took).toHaveLength(ROUNDS);
    expect(Math.max(...took)).toBeLessThan(withStalls(CONFIRM_MS + 1_000));
  },
  PATIENCE_MS,
);
