/**
 * Cuts one kind of connection between gateways and Redis; gateways reconnect. Limit: cuts those of every gateway on
 * that database.
 */
import { isOneServer } from "../../src/redis/servers.ts";
import type { TestBroker } from "./broker.ts";
import { clusterServers } from "./on-cluster.ts";

export async function cutConnection(
  { redis, db }: TestBroker,
  role: "blocking" | "subscriber",
): Promise<void> {
  const servers = isOneServer(redis) ? [redis] : clusterServers();
  await Promise.all(
    servers.map(async (server) => {
      const lines = String(await server.client("LIST")).split("\n");
      const mine = lines.filter(
        (line) => line.includes(` db=${db} `) && line.includes(` name=errand:${role} `),
      );
      for (const line of mine) await server.client("KILL", "ID", /^id=(\d+) /.exec(line)?.[1] ?? "0");
      if (server !== redis) server.disconnect();
    }),
  );
}
