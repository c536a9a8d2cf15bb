/**
 * One snapshot for `errand top`, as far as the token may see it. Limit: workers and ages are read for the busiest
 * agents only, one agent after the other, to spare the broker.
 */
import type { Admin } from "../../client/admin.ts";
import { ErrandApiError } from "../../client/errors.ts";
import type { Pages } from "../../client/pages.ts";
import type { Agent, Worker } from "../../schema/agent.ts";
import type { Delegation } from "../../schema/delegation.ts";
import type { Stats } from "../../schema/stats.ts";
import { QUESTION_STATES, seesFigures } from "../rights.ts";

/** The number of agents whose workers and oldest delegation are read. */
const DETAILED = 25;
const QUESTIONS = 50;

export interface AgentRow {
  readonly name: string;
  readonly presence: Agent["presence"];
  readonly paused: boolean;
  readonly counts: Agent["counts"];
  /** How many workers polled lately or hold a lease; null: not read. */
  readonly workers: number | null;
  /** How long the oldest has waited; null: nothing waits, or not read. */
  readonly oldest_seconds: number | null;
}

export interface Snapshot {
  /** By the broker's clock. */
  readonly at: string;
  readonly principal: string;
  /** Busy agents first, then the others; each by name. */
  readonly agents: readonly AgentRow[];
  readonly totals: Agent["counts"] & { readonly online: number; readonly oldest_seconds: number | null };
  readonly last_hour: Stats["totals"];
  /** The newest open questions that the token may see, the soonest to expire first. */
  readonly questions: readonly Delegation[];
}

export interface Source {
  readonly admin: Admin;
  readonly pages: Pages;
}

export async function readSnapshot({ admin, pages }: Source, signal: AbortSignal): Promise<Snapshot> {
  const [{ now, principal }, found, hour, asking] = await Promise.all([
    admin.status({ signal }),
    admin.listAgents({ signal }),
    admin.stats({ period: "hour" }, { signal }),
    pages.list({ state: QUESTION_STATES, limit: QUESTIONS }, signal),
  ]);
  const agents: AgentRow[] = [];
  for (const [at, agent] of [...found].sort(busyFirst).entries()) {
    const isDetailed = at < DETAILED && seesFigures(principal, agent.name);
    agents.push(await toRow(admin, agent, isDetailed ? now : undefined, signal));
  }
  const sum = (name: keyof Agent["counts"]) => found.reduce((all, { counts }) => all + counts[name], 0);
  const oldest = agents.flatMap(({ oldest_seconds }) => oldest_seconds ?? []);
  return {
    at: now,
    principal,
    agents,
    totals: {
      online: found.filter(({ presence }) => presence.state === "online").length,
      ...{ waiting: sum("waiting"), delayed: sum("delayed") },
      ...{ working: sum("working"), interrupted: sum("interrupted"), awaiting: sum("awaiting") },
      oldest_seconds: oldest.length > 0 ? Math.max(...oldest) : null,
    },
    last_hour: hour.totals,
    questions: asking.delegations.filter(({ interrupt }) => interrupt !== null).sort(soonestFirst),
  };
}

const isBusy = ({ counts }: Agent): boolean => Object.values(counts).some((count) => count > 0);
const busyFirst = (a: Agent, b: Agent): number =>
  Number(isBusy(b)) - Number(isBusy(a)) || a.name.localeCompare(b.name);
const expiry = ({ interrupt }: Delegation): number => Date.parse(interrupt?.expires_at ?? "");
const soonestFirst = (a: Delegation, b: Delegation): number => expiry(a) - expiry(b);

async function toRow(
  admin: Admin,
  { name, presence, paused, counts, delivery }: Agent,
  /** The broker's time, if workers and age are to be read. */
  now: string | undefined,
  signal: AbortSignal,
): Promise<AgentRow> {
  const [workers, oldest_seconds] = await Promise.all([
    now !== undefined && delivery.mode === "poll" ? workersOf(admin, name, now, signal) : null,
    now !== undefined && counts.waiting > 0 ? oldestOf(admin, name, signal) : null,
  ]);
  return { name, presence, paused, counts, workers, oldest_seconds };
}

/** A worker that waits for work polls again within this time. */
const RECENT_MS = 90_000;

async function workersOf(
  admin: Admin,
  name: string,
  now: string,
  signal: AbortSignal,
): Promise<number | null> {
  const workers = await unlessRefused(admin.listWorkers(name, { signal }));
  const isAlive = ({ last_seen_at, delegations }: Worker) =>
    delegations.length > 0 || Date.parse(last_seen_at) > Date.parse(now) - RECENT_MS;
  return workers?.filter(isAlive).length ?? null;
}

async function oldestOf(admin: Admin, target: string, signal: AbortSignal): Promise<number | null> {
  const stats = await unlessRefused(admin.stats({ period: "hour", target }, { signal }));
  // A minute that has just begun may not have a sample yet.
  const [before, last] = stats?.buckets.slice(-2) ?? [];
  return last?.oldest_seconds || before?.oldest_seconds || null;
}

/** Null for an agent that was deleted meanwhile. */
async function unlessRefused<T>(call: Promise<T>): Promise<T | null> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof ErrandApiError && [403, 404].includes(error.status)) return null;
    throw error;
  }
}
