/**
 * The delegation's children as subagents, as far as the caller may see them. Limit: only the newest 20. A new child is
 * announced with its parent's next event; its end is sent at once.
 */
import type { Principal } from "../../engine/access/access.ts";
import type { Broker } from "../../engine/broker.ts";
import { childrenOf } from "../../engine/delegations/tree.ts";
import type { StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import type { AgUiEvent } from "../../schema/ag-ui-event.ts";
import { type DelegationError, delegationErrorSchema } from "../../schema/delegation.ts";
import { TERMINAL_EVENT_TYPES } from "../../schema/event.ts";

const MOST = 20;
/** Limits the look-ups: an agent may report progress a hundred times a second. */
const PAUSE_MS = 1_000;

export class Subagents {
  readonly #broker: Broker;
  readonly #principal: Principal;
  readonly #parent: string;
  readonly #onChange: () => void;
  /** The announced children that are live. The value ends the subscription for the child's end. */
  readonly #active = new Map<string, () => void>();
  readonly #ended = new Set<string>();
  #lookedAt = Number.NEGATIVE_INFINITY;
  #later: NodeJS.Timeout | undefined;

  constructor(broker: Broker, principal: Principal, parent: string, onChange: () => void) {
    this.#broker = broker;
    this.#principal = principal;
    this.#parent = parent;
    this.#onChange = onChange;
  }

  /** The changes since the last call. Without `now`, a call soon after another returns none, and wakes the run later. */
  async look(now: boolean): Promise<AgUiEvent[]> {
    const leftMs = this.#lookedAt + PAUSE_MS - performance.now();
    if (!now && leftMs > 0) {
      this.#later ??= setTimeout(this.#onChange, leftMs).unref();
      return [];
    }
    clearTimeout(this.#later);
    this.#later = undefined;
    this.#lookedAt = performance.now();
    const children = await childrenOf(this.#broker, this.#principal, this.#parent, MOST);
    return children.reverse().flatMap((child) => [...this.#begin(child), ...this.#end(child)]);
  }

  #begin(child: StoredDelegation): AgUiEvent[] {
    const { id } = child;
    if (this.#active.has(id) || this.#ended.has(id)) return [];
    const stop = this.#broker.feed.subscribe(
      { kind: "delegation", id },
      { push: ({ type }) => TERMINAL_EVENT_TYPES.includes(type) && this.#onChange(), gap: this.#onChange },
    );
    this.#active.set(id, stop);
    const description = previewOf(child.get("task_preview"));
    return [{ type: "SUBAGENT_STARTED", subagentRunId: id, name: child.get("target"), description }];
  }

  #end(child: StoredDelegation): AgUiEvent[] {
    const { id } = child;
    if (!child.finished || !this.#active.has(id)) return [];
    this.#active.get(id)?.();
    this.#active.delete(id);
    this.#ended.add(id);
    if (child.get("state") === "completed")
      return [{ type: "SUBAGENT_FINISHED", subagentRunId: id, outcome: { type: "success" } }];
    const { message, code } = errorOf(child.get("error"));
    return [{ type: "SUBAGENT_ERROR", subagentRunId: id, message, code }];
  }

  /** Suspends the children that continue after this run. */
  suspend(): AgUiEvent[] {
    return [...this.#active.keys()].map((subagentRunId) => ({
      type: "SUBAGENT_FINISHED",
      subagentRunId,
      outcome: { type: "suspended" },
    }));
  }

  stop(): void {
    clearTimeout(this.#later);
    for (const stop of this.#active.values()) stop();
    this.#active.clear();
  }
}

const previewOf = (json: string): string => String(JSON.parse(json));

const errorOf = (json: string | null): Pick<DelegationError, "code" | "message"> =>
  json === null
    ? { code: "internal", message: "The delegation ended without an error." }
    : delegationErrorSchema.parse(JSON.parse(json));
