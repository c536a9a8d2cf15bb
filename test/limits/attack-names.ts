/** What attacks.ts asks of attackers.ts. */
import { z } from "zod";

export const NAMES = [
  "pipelined headers",
  "replays that are read",
  "replays that are not read",
  "many members over MCP",
  "many members over A2A",
  "many members over REST",
  "answers of MCP that are not read",
  "half a head, without a token",
  "documentation, without a token",
  "held heartbeats on one lease",
] as const;

export type AttackName = (typeof NAMES)[number];

const orderSchema = z.object({
  name: z.string(),
  token: z.string(),
  worker: z.object({ agent: z.string(), token: z.string() }),
});
export type Order = z.output<typeof orderSchema>;

export const ordersSchema = z.object({
  url: z.string(),
  orders: z.array(orderSchema),
});
export type Orders = z.output<typeof ordersSchema>;
