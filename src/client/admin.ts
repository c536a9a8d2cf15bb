/** Manages agents, tokens and sessions: for operators, and for agents that set themselves up. */
import * as z from "zod";
import {
  type AgentChange,
  type Agent as AgentInfo,
  type AgentPatch,
  agentChangeSchema,
  agentPageSchema,
  agentSchema,
  type Worker,
  workersSchema,
} from "../schema/agent.ts";
import { type AuditEntry, type AuditFilter, auditPageSchema } from "../schema/audit.ts";
import type { PeriodBudgets } from "../schema/budget.ts";
import { mergePatch } from "../schema/merge-patch.ts";
import {
  type ListedSession,
  type NewSession,
  newSessionSchema,
  type SessionCode,
  sessionCodeSchema,
  sessionPageSchema,
} from "../schema/session.ts";
import {
  type AgentFigures,
  agentFiguresPageSchema,
  type Stats,
  type StatsFilter,
  statsSchema,
} from "../schema/stats.ts";
import { type Status, statusSchema } from "../schema/status.ts";
import { newTokenSchema, type TokenInfo, tokenSchema } from "../schema/token.ts";
import { eachPage } from "./each-page.ts";
import { ErrandApiError } from "./errors.ts";
import { type ConnectionOptions, Http, route } from "./http.ts";

/** How many rounds of PATCH, then PUT, are tried while other clients create and delete the agent. */
const MAX_ROUNDS = 5;
const hasCode = (error: unknown, code: string): boolean =>
  error instanceof ErrandApiError && error.code === code;

const tokensSchema = z.object({ tokens: z.array(tokenSchema) });
/** A token with its secret (`token`), which is shown only once; `expires_at` is an ISO 8601 instant, or null. */
export type NewToken = z.infer<typeof newTokenSchema>;

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

export interface PageOptions extends CallOptions {
  /** How many entries one request fetches, 1 to 100; default 100. */
  readonly pageSize?: number | undefined;
}

/**
 * Manages agents, tokens and sessions. Most methods need the operator's token; an agent may manage itself, and everybody
 * their own sessions.
 */
export class Admin {
  readonly #http: Http;

  /** Sends no request yet. Throws `invalid_url`. */
  constructor(options: ConnectionOptions = {}) {
    this.#http = new Http(options);
  }

  /** The broker's version and time, and the principal of your token. For the operator and viewers also its Redis. */
  status({ signal }: CallOptions = {}): Promise<Status> {
    return this.#http.requestWithRetry(statusSchema, { path: "/v1/status", signal });
  }

  /**
   * Throughput, queue length, times to a worker and to completion, and failures by code: of the last hour by the minute, or of
   * the last day by the quarter of an hour. Without a filter, of everything that concerns your token. Throws
   * `agent_unknown`, and `forbidden` for the figures of others.
   *
   * @example
   * ```ts
   * const { totals } = await admin.stats({ period: "day", target: "scout" });
   * ```
   */
  stats(filter: StatsFilter = {}, { signal }: CallOptions = {}): Promise<Stats> {
    return this.#http.requestWithRetry(statsSchema, { path: "/v1/stats", query: { ...filter }, signal });
  }

  /**
   * How the work of each agent ended in the last hour, by the quarter of an hour from `since` on; up to ten seconds old.
   * An agent's token gets only its own figures, a caller's none.
   */
  async statsByAgent(options: PageOptions = {}): Promise<{ since: string | null; agents: AgentFigures[] }> {
    const { pageSize: limit, signal } = options;
    const found: { since: string | null; agents: AgentFigures[] } = { since: null, agents: [] };
    const pages = eachPage((cursor) =>
      this.#http.requestWithRetry(agentFiguresPageSchema, {
        path: "/v1/stats/agents",
        query: { cursor, limit },
        signal,
      }),
    );
    for await (const { since, agents } of pages) {
      found.since ??= since;
      found.agents.push(...agents);
    }
    return found;
  }

  /** Agents by name, with presence and counts, fetched page by page as the loop asks for them. */
  async *agents(options: PageOptions = {}): AsyncGenerator<AgentInfo, void> {
    const { pageSize: limit, signal } = options;
    const pages = eachPage((cursor) =>
      this.#http.requestWithRetry(agentPageSchema, { path: "/v1/agents", query: { cursor, limit }, signal }),
    );
    for await (const { agents } of pages) yield* agents;
  }

  /** Returns all agents at once, otherwise like {@link Admin.agents}. */
  async listAgents(options: PageOptions = {}): Promise<AgentInfo[]> {
    const all: AgentInfo[] = [];
    for await (const agent of this.agents(options)) all.push(agent);
    return all;
  }

  /** Throws `agent_unknown`. */
  getAgent(name: string, { signal }: CallOptions = {}): Promise<AgentInfo> {
    return this.#http.requestWithRetry(agentSchema, { path: route`/v1/agents/${name}`, signal });
  }

  /** The agent's workers: when each was last seen, and the delegations that it works on. Up to 1 000, newest first. */
  async listWorkers(name: string, { signal }: CallOptions = {}): Promise<Worker[]> {
    const path = route`/v1/agents/${name}/workers`;
    return (await this.#http.requestWithRetry(workersSchema, { path, signal })).workers;
  }

  /**
   * Creates the agent, or changes the settings that are given and leaves the others as they are; `null` resets one to
   * its default. Safe to call at every start of a worker. Returns the agent, and which settings were changed or reset.
   *
   * @example
   * ```ts
   * await admin.putAgent("scout", { limits: { max_working: 1 }, accepts_from: null });
   * ```
   */
  async putAgent(
    name: string,
    settings: AgentPatch = {},
    { signal }: CallOptions = {},
  ): Promise<AgentChange> {
    const path = route`/v1/agents/${name}`;
    const put = (method: "PUT" | "PATCH", body: unknown, headers = {}) =>
      this.#http.requestWithRetry(agentChangeSchema, { method, path, body, headers, signal });
    for (let round = 1; ; round += 1) {
      try {
        return await put("PATCH", settings);
      } catch (error) {
        if (!hasCode(error, "agent_unknown")) throw error;
      }
      try {
        return await put("PUT", mergePatch({}, settings), { "if-none-match": "*" });
      } catch (error) {
        // Another client created it meanwhile, for example a worker that started at the same time.
        if (!hasCode(error, "precondition_failed") || round === MAX_ROUNDS) throw error;
      }
    }
  }

  /** Creates the agent. Throws `precondition_failed` if it exists, and leaves it as it is. */
  createAgent(name: string, settings: AgentPatch = {}, { signal }: CallOptions = {}): Promise<AgentChange> {
    const path = route`/v1/agents/${name}`;
    const body = mergePatch({}, settings);
    const headers = { "if-none-match": "*" };
    // Not retried: a retry of a call whose answer was lost would find the agent that it created.
    return this.#http.request(agentChangeSchema, { method: "PUT", path, body, headers, signal });
  }

  /**
   * Creates the agent, or replaces all of its settings: those that `settings` leaves out are reset to their defaults,
   * restrictions like `accepts_from` too.
   */
  replaceAgent(name: string, settings: AgentPatch = {}, { signal }: CallOptions = {}): Promise<AgentChange> {
    const path = route`/v1/agents/${name}`;
    const body = mergePatch({}, settings);
    return this.#http.requestWithRetry(agentChangeSchema, { method: "PUT", path, body, signal });
  }

  /** Deletes the agent. Throws `agent_busy` while it has live delegations, unless `force` is set, which cancels them. */
  async deleteAgent(name: string, options: CallOptions & { force?: boolean } = {}): Promise<void> {
    await this.#http.requestWithRetry(z.unknown(), {
      method: "DELETE",
      path: route`/v1/agents/${name}`,
      query: { force: options.force ? "true" : undefined },
      signal: options.signal,
    });
  }

  /** Stops giving the agent's workers new work. Work in progress continues, and new delegations are queued. */
  pauseAgent(name: string, { signal }: CallOptions = {}): Promise<AgentInfo> {
    return this.#http.requestWithRetry(agentSchema, {
      method: "POST",
      path: route`/v1/agents/${name}/pause`,
      signal,
    });
  }

  /** Undoes {@link Admin.pauseAgent}. */
  resumeAgent(name: string, { signal }: CallOptions = {}): Promise<AgentInfo> {
    return this.#http.requestWithRetry(agentSchema, {
      method: "POST",
      path: route`/v1/agents/${name}/resume`,
      signal,
    });
  }

  /** Returns the secret, which is shown only once. Never retried: a lost answer leaves a token that nobody knows. */
  createToken(
    principal: string,
    options: CallOptions & {
      expiresInSeconds?: number | undefined;
      /** The highest priority that it may delegate with, 0 to 9. */
      maxPriority?: number | undefined;
      /** What its work may use by day and by month, UTC, with all that is delegated under it. */
      budgets?: PeriodBudgets | undefined;
    } = {},
  ): Promise<NewToken> {
    const { expiresInSeconds, maxPriority, budgets, signal } = options;
    return this.#http.request(newTokenSchema, {
      method: "POST",
      path: "/v1/tokens",
      body: {
        principal,
        ...(expiresInSeconds !== undefined && { expires_in_seconds: expiresInSeconds }),
        ...(maxPriority !== undefined && { max_priority: maxPriority }),
        ...(budgets !== undefined && { budgets }),
      },
      signal,
    });
  }

  /** All tokens, without their secrets. */
  async listTokens({ signal }: CallOptions = {}): Promise<TokenInfo[]> {
    return (await this.#http.requestWithRetry(tokensSchema, { path: "/v1/tokens", signal })).tokens;
  }

  /**
   * Opens a session for a person. For 12 hours, it has the rights of this client's token. With a `code`, no token is sent,
   * and the session has the rights of the token that created the code. Pass the `token` of the answer, which is shown
   * only once, to other clients. Never retried: a code works once. Throws `unauthenticated` for a code that is unknown, expired or used.
   *
   * @example
   * ```ts
   * const { token } = await new Admin({ url }).createSession({ code });
   * const delegator = new Delegator({ url, token });
   * ```
   */
  createSession(options: CallOptions & { code?: string | undefined } = {}): Promise<NewSession> {
    const { code, signal } = options;
    return this.#http.request(newSessionSchema, {
      method: "POST",
      path: "/v1/sessions",
      body: { ...(code !== undefined && { code }) },
      anonymous: code !== undefined,
      signal,
    });
  }

  /** A code that opens one session with this client's token, within ten minutes; `url` is a link that signs in with it. */
  createSessionCode({ signal }: CallOptions = {}): Promise<SessionCode> {
    return this.#http.request(sessionCodeSchema, { method: "POST", path: "/v1/sessions/codes", signal });
  }

  /** The sessions of this client's principal (for the operator: all), fetched page by page. */
  async *sessions(options: PageOptions = {}): AsyncGenerator<ListedSession, void> {
    const { pageSize: limit, signal } = options;
    const pages = eachPage((cursor) =>
      this.#http.requestWithRetry(sessionPageSchema, {
        path: "/v1/sessions",
        query: { cursor, limit },
        signal,
      }),
    );
    for await (const { sessions } of pages) yield* sessions;
  }

  /** Ends a session within a second, also its open streams and polls. To sign out, revoke your own session. */
  async revokeSession(id: string, { signal }: CallOptions = {}): Promise<void> {
    await this.#http.requestWithRetry(z.unknown(), {
      method: "DELETE",
      path: route`/v1/sessions/${id}`,
      signal,
    });
  }

  /** The audit log, newest first, fetched page by page as the loop asks for it. */
  async *audit(filter: AuditFilter = {}, options: PageOptions = {}): AsyncGenerator<AuditEntry, void> {
    const { pageSize: limit, signal } = options;
    const pages = eachPage((cursor) =>
      this.#http.requestWithRetry(auditPageSchema, {
        path: "/v1/audit",
        query: { ...filter, cursor, limit },
        signal,
      }),
    );
    for await (const { entries } of pages) yield* entries;
  }

  /** The token stops working within a second, also in open streams and polls, and its sessions end. */
  async revokeToken(id: string, { signal }: CallOptions = {}): Promise<void> {
    await this.#http.requestWithRetry(z.unknown(), {
      method: "DELETE",
      path: route`/v1/tokens/${id}`,
      signal,
    });
  }
}
