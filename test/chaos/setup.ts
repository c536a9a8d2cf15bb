/** What the supervisor gives each process that it starts. Limit: data only; it goes through a file. */
import * as z from "zod";

export const ROLES = [
  "agent",
  "library",
  "delegator",
  "subscriber",
  "a2a",
  "mcp",
  "server",
  "receiver",
] as const;
export type Role = (typeof ROLES)[number];

export const setupSchema = z.object({
  proc: z.string(),
  role: z.enum(ROLES),
  seed: z.number(),
  /** Of which generation of this process it is; a new one draws other numbers. */
  life: z.number(),
  /** Where this process's history goes. */
  history: z.string(),
  gateways: z.array(z.string()),
  /** By principal. */
  tokens: z.record(z.string(), z.string()),
  /** Agents that take work from anybody. */
  agents: z.array(z.string()),
  /** Delegations a second, by this process. */
  rate: z.number(),
  leaseSeconds: z.number(),
  /** Polls of a worker over plain HTTP. */
  slots: z.number(),
  /** What workers do with all their work, instead of drawing it. */
  deed: z.string().nullable(),
  /** Whether submits have an idempotency key. */
  keyed: z.boolean(),
  /** Where callbacks go, and how they are signed. */
  receiver: z.object({ url: z.string(), port: z.number(), secret: z.string() }),
  /** Where the push agent's server listens. */
  serverPort: z.number(),
});
export type Setup = z.infer<typeof setupSchema>;

/** What the supervisor says to a running process. */
export const orderSchema = z.enum(["quiet", "shelf", "finish"]);
/** `quiet`: make no new work · `shelf`: take what waits there · `finish`: end. */
export type Order = z.infer<typeof orderSchema>;

/** Polled by nobody until the end, so that there is always work that waits. */
export const SHELF = "shelf";
export const PUSH_AGENT = "pushed";
export const MCP_AGENT = "mcp";
export const LIBRARY_AGENT = "library";
export const A2A_AGENT = "a2a";

/** The first words of every task, by which its delegation is recognized wherever it is seen. */
export const taskOf = (key: string, filler = ""): string => `chaos ${key} ${filler}`;
export const keyOf = (text: string): string => /^chaos (\S+)/.exec(text)?.[1] ?? "";
