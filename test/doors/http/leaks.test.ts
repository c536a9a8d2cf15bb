/** Polls, waits and streams release everything, however they end. Limit: hundreds of them; the number makes no difference. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { expect, test, vi } from "vitest";
import { toPrincipal } from "../../../src/engine/access/access.ts";
import { as, client, startBroker } from "../../support/broker.ts";
import { until } from "../../support/until.ts";

test("polls, waits and streams leave nothing behind, however they end", async () => {
  const { url, gateway } = await startBroker();
  const { broker } = gateway;
  const {
    handoff: { polls },
    quotas,
    metrics,
  } = broker;
  const api = client(url);
  await api.agent("scout");
  const principal = toPrincipal("agent:scout");
  const hold = broker.tokens.watch.bind(broker.tokens);
  let holding = 0;
  vi.spyOn(broker.tokens, "watch").mockImplementation((identity, end) => {
    const one = hold(identity, end);
    holding += 1;
    let over = false;
    const release = () => {
      if (!over) holding -= 1;
      over = true;
      one.release();
    };
    return { hasEnded: () => one.hasEnded(), release };
  });

  for (const end of ["destroyed", "reset", "revoked", "served", "too late"] as const) {
    const { token, tokenId } = await as(url, "agent:scout");
    const open = (method: string, path: string, body?: string): Socket => {
      const socket = connect(gateway.port, "127.0.0.1");
      socket.on("error", () => {}).resume();
      const content =
        body === undefined ? "" : `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`;
      socket.write(
        `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\nAccept: text/event-stream, */*\r\n${content}\r\n${body ?? ""}`,
      );
      return socket;
    };
    const wait = end === "too late" ? 1 : 50;
    const parked = Array.from({ length: 60 }, () =>
      open("POST", "/v1/agents/scout/leases", `{"wait_seconds":${wait}}`),
    );
    const streams =
      end === "too late" || end === "served"
        ? []
        : Array.from({ length: 20 }, () => open("GET", "/v1/events"));
    const sockets = [...parked, ...streams];
    const closed = sockets.map((socket) => once(socket, "close"));
    const areOpen = () =>
      polls.count("scout") === 60 && quotas.inUse(principal, "streams") === streams.length;
    // On a busy machine, the first of those that end by themselves may end before the last one is open.
    if (end !== "too late") {
      await until(areOpen, { what: `all open, to be ${end}` });
      expect(holding).toBeGreaterThanOrEqual(sockets.length);
    }
    if (end === "destroyed") for (const socket of sockets) socket.destroy();
    else if (end === "reset") for (const socket of sockets) socket.resetAndDestroy();
    else if (end === "revoked") await api.call("DELETE", `/v1/tokens/${tokenId}`);
    else if (end === "served") await Promise.all(parked.map(() => api.delegate("scout")));
    await Promise.all(closed);
    await until(
      () => holding === 0 && quotas.inUse(principal, "polls") + quotas.inUse(principal, "streams") === 0,
      {
        what: `nothing held, ${end}`,
      },
    );
    expect([...polls.agents()], end).toEqual([]);
    expect((await metrics.text()).match(/^errand_streams\S* (\d+)$/m)?.[1] ?? "0", end).toBe("0");
  }
}, 120_000);
