/**
 * The data of `errand status`, as far as the token may see it. Limit: the parts are read one after the other, so they
 * are not of the same instant.
 */
import { Admin } from "../../client/admin.ts";
import { type Alarm, alarmsOf } from "../../client/alarms.ts";
import { Delegator } from "../../client/delegator.ts";
import type { ConnectionOptions } from "../../client/http.ts";
import { largestUnit, pausedWorkers, timeLeft } from "../../client/words.ts";
import type { Agent } from "../../schema/agent.ts";
import type { Delegation } from "../../schema/delegation.ts";
import { LIMITS } from "../../schema/limits.ts";
import type { Stats } from "../../schema/stats.ts";
import { DISK_LOW_BYTES, type Status } from "../../schema/status.ts";
import { hasVoted } from "../../schema/vote-text.ts";
import { answersAll, QUESTION_STATES } from "../rights.ts";
import { sizeText } from "../show/size.ts";
import { degradedBy } from "../storage-reason.ts";

/** How many questions are shown, and how many are counted. */
const QUESTIONS = 5;
export const MAX_QUESTIONS = 1000;
const PAGE = 100;
/** How many agents are named in alarms. */
const NAMED = 5;

export interface Overview extends Status {
  readonly agents: {
    readonly total: number;
    readonly polling: number;
    readonly offline: number;
    readonly paused: number;
    /** The names of those that are offline. */
    readonly offline_names: readonly string[];
  };
  /** Of all agents that the token may see. */
  readonly work: {
    readonly waiting: number;
    readonly delayed: number;
    readonly working: number;
    readonly asking: number;
    /** They wait for children of their own. */
    readonly awaiting: number;
    /** How long the oldest has waited; null if the token may not see it. */
    readonly oldest_seconds: number | null;
  };
  readonly last_hour: Stats["totals"];
  readonly last_day: Stats["totals"];
  /** How many open questions the token may answer, at least. */
  readonly open_questions: number;
  /** The questions that expire first. */
  readonly questions: readonly Delegation[];
  readonly has_more_questions: boolean;
  readonly alarms: readonly string[];
}

export async function overviewOf(connection: ConnectionOptions, ownVersion: string): Promise<Overview> {
  const admin = new Admin(connection);
  const status = await admin.status();
  const [agents, hour, day, questions, degraded] = await Promise.all([
    admin.listAgents(),
    admin.stats({ period: "hour" }),
    admin.stats({ period: "day" }),
    questionsFor(status.principal, connection),
    degradedBy(connection.url ?? status.url),
  ]);
  const sum = (pick: (counts: Agent["counts"]) => number) =>
    agents.reduce((all, { counts }) => all + pick(counts), 0);
  const offline = agents.filter(({ presence }) => presence.state !== "online");
  return {
    ...status,
    agents: {
      total: agents.length,
      polling: agents.length - offline.length,
      offline: offline.length,
      paused: agents.filter(({ paused }) => paused).length,
      offline_names: offline.map(({ name }) => name),
    },
    work: {
      waiting: sum(({ waiting }) => waiting),
      delayed: sum(({ delayed }) => delayed),
      working: sum(({ working }) => working),
      asking: sum(({ interrupted }) => interrupted),
      awaiting: sum(({ awaiting }) => awaiting),
      oldest_seconds: hour.buckets.at(-1)?.oldest_seconds ?? null,
    },
    last_hour: hour.totals,
    last_day: day.totals,
    open_questions: questions.length,
    questions: questions.slice(0, QUESTIONS),
    has_more_questions: questions.length > QUESTIONS,
    alarms: [
      ...versionAlarm(ownVersion, status.version),
      ...(degraded === undefined ? [] : [`the broker is degraded: ${degraded}`]),
      ...memoryAlarm(status),
      ...diskAlarm(status),
      ...agentAlarms(agents, Date.parse(status.now)),
      ...(await workerAlarms(admin, agents)),
    ],
  };
}

/**
 * Callers and agents answer the questions of what they delegated; the operator and approvers answer all; viewers none. Those
 * that the principal has approved wait for others.
 */
async function questionsFor(principal: string, connection: ConnectionOptions): Promise<Delegation[]> {
  const found: Delegation[] = [];
  if (principal.startsWith("viewer:")) return found;
  const delegator = answersAll(principal) ? undefined : principal;
  const open = new Delegator(connection).list({ state: QUESTION_STATES, delegator }, { pageSize: PAGE });
  for await (const one of open) {
    if (one.interrupt && hasVoted(one.interrupt, principal)) continue;
    found.push(one);
    if (found.length === MAX_QUESTIONS) break;
  }
  const expiry = ({ interrupt }: Delegation) => Date.parse(interrupt?.expires_at ?? "") || 0;
  return found.sort((one, other) => expiry(one) - expiry(other));
}

function* versionAlarm(own: string, broker: string): Generator<string> {
  if (own !== broker) yield `this program is ${own}, the broker ${broker}: use the same version`;
}

function* memoryAlarm({ redis }: Status): Generator<string> {
  if (redis === null || redis.maxmemory_bytes === 0) return;
  const percent = Math.floor((100 * redis.used_memory_bytes) / redis.maxmemory_bytes);
  if (percent < LIMITS.memory_new_work.value) return;
  const what =
    percent < LIMITS.memory_ceiling.value
      ? "new work is refused"
      : "new work is refused, and work in progress cannot grow";
  yield `${what}: Redis uses ${percent} % of its memory; delete finished work or raise maxmemory`;
}

function* diskAlarm({ redis }: Status): Generator<string> {
  const { disk_free_bytes: free } = redis ?? {};
  if (free === undefined || free >= DISK_LOW_BYTES) return;
  yield `the data directory's disk has ${sizeText(free)} left: make room, or Redis ends`;
}

/** Workers that pause, by name where the token may see it. */
async function workerAlarms(admin: Admin, agents: readonly Agent[]): Promise<string[]> {
  const found = agents.filter(({ presence }) => presence.paused !== undefined);
  const alarms = await Promise.all(
    found.slice(0, NAMED).map(async ({ name, presence }) => {
      const workers = await admin.listWorkers(name).catch(() => []);
      const own = workers.flatMap(({ id, paused }) =>
        paused
          ? [`worker ${id} of ${name} is paused: ${paused.reason}, next try in ${leftUntil(paused.until)}`]
          : [],
      );
      return own.length > 0 ? own.slice(0, NAMED) : [`${name}: ${pausedWorkers(presence.paused)}`];
    }),
  );
  const more = found.length - NAMED;
  return [...alarms.flat(), ...(more > 0 ? [`workers of ${more} more agents are paused`] : [])];
}

const leftUntil = (until: string): string => timeLeft(Date.parse(until) - Date.now());

const WHY: Readonly<Record<Exclude<Alarm["kind"], "workers_paused">, (agent: string) => string>> = {
  paused: (agent) => `${agent} is paused`,
  unreachable: (agent) => `${agent} cannot be reached`,
  no_worker: (agent) => `${agent} has no worker`,
  all_busy: (agent) => `all workers of ${agent} are busy`,
};

/** Agents with waiting work that nobody takes, or with much of it. */
function* agentAlarms(agents: readonly Agent[], now: number): Generator<string> {
  const alarms = alarmsOf(agents, now).flatMap(({ kind, ...alarm }) =>
    kind === "workers_paused" ? [] : [{ kind, ...alarm }],
  );
  // Those that no time will end come first.
  const stuck = alarms.filter(({ kind }) => kind !== "all_busy");
  const busy = alarms.filter(({ kind }) => kind === "all_busy");
  for (const { kind, agent, waits, since } of [...stuck.slice(0, NAMED), ...busy.slice(0, NAMED)]) {
    const oldest =
      kind === "all_busy" && since !== null ? `, the oldest for ${largestUnit(now - Date.parse(since))}` : "";
    yield `${WHY[kind](agent)}: ${waits} ${waits === 1 ? "delegation waits" : "delegations wait"}${oldest}`;
  }
  if (stuck.length > NAMED) yield `${stuck.length - NAMED} more agents have waiting work that nobody takes`;
  if (busy.length > NAMED) yield `all workers of ${busy.length - NAMED} more agents are busy`;
}
