/**
 * Cuts one kind of connection between gateways and Redis; gateways reconnect. Limit: cuts those of every gateway on
 * that database.
 */
import type { TestBroker } from "./broker.ts";

export async function cutConnection(
  { redis, db }: TestBroker,
  role: "blocking" | "subscriber",
): Promise<void> {
  const lines = String(await redis.client("LIST")).split("\n");
  const mine = lines.filter((line) => line.includes(` db=${db} `) && line.includes(` name=errand:${role} `));
  for (const line of mine) await redis.client("KILL", "ID", /^id=(\d+) /.exec(line)?.[1] ?? "0");
}
