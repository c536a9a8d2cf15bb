/** The setup that the supervisor passes to each process, through a file. */
import * as z from "zod";

export const ROLES = [
  "agent",
  "library",
  "delegator",
  "subscriber",
  "a2a",
  "agui",
  "mcp",
  "server",
  "receiver",
  "person",
] as const;
export type Role = (typeof ROLES)[number];

export const setupSchema = z.object({
  proc: z.string(),
  role: z.enum(ROLES),
  seed: z.number(),
  /** The number of the process's restarts; each life draws other random numbers. */
  life: z.number(),
  /** The path of this process's history. */
  history: z.string(),
  gateways: z.array(z.string()),
  /** By principal. */
  tokens: z.record(z.string(), z.string()),
  /** Agents that accept work from every caller. */
  agents: z.array(z.string()),
  /** Seconds between two rules of one principal. */
  ruleSeconds: z.number(),
  /** Delegations a second, by this process. */
  rate: z.number(),
  leaseSeconds: z.number(),
  /** The number of polls of a worker over plain HTTP. */
  slots: z.number(),
  /** How long a worker's poll waits. */
  pollSeconds: z.number(),
  /** What workers do with every task; null: the seed decides. */
  behavior: z.string().nullable(),
  /** Whether submits have an idempotency key. */
  keyed: z.boolean(),
  /** Where callbacks and notifications are received, and the secret that signs both. */
  receiver: z.object({ url: z.string(), noticeUrl: z.string(), port: z.number(), secret: z.string() }),
  /** The port of the push agent's server. */
  serverPort: z.number(),
});
export type Setup = z.infer<typeof setupSchema>;

/** The supervisor's orders to a running process. */
export const orderSchema = z.enum(["quiet", "shelf", "finish"]);
/** `quiet`: submit no new work · `shelf`: take the work that waits there · `finish`: end. */
export type Order = z.infer<typeof orderSchema>;

/** An agent that nobody polls until the end, so that some work always waits. */
export const SHELF = "shelf";
/** An agent whose questions need the approvals of two people who did not delegate. */
export const COUNCIL = "council";
/** The events of a subscription to all of the council's work; others are about its questions. */
export const EVERYTHING = "question,question_expired,ended";
export const PUSH_AGENT = "pushed";
export const MCP_AGENT = "mcp";
export const LIBRARY_AGENT = "library";
export const A2A_AGENT = "a2a";

/** The task's text begins with its key, by which its delegation is recognized everywhere. */
export const taskOf = (key: string, filler = ""): string => `chaos ${key} ${filler}`;
export const keyOf = (text: string): string => /^chaos (\S+)/.exec(text)?.[1] ?? "";

/** The text of an answer that raises a budget. */
export const RAISED = "more";

/** The actions that agents ask for, each with a number `n` below {@link ARGUMENT_BELOW}. */
export const ACTIONS = ["deploy", "files.read", "files.write"] as const;
export const ARGUMENT_BELOW = 10;
