/**
 * Whether an approval of this person counts, by the agents' `votes`, so that the CLI offers none that the broker would refuse.
 * Limit: the setting changes without an event, so what was read is right for a while only; where it cannot be read, the
 * approval is taken to count, and the broker decides.
 */
import { Admin } from "../client/admin.ts";
import { ErrandApiError } from "../client/errors.ts";
import type { ConnectionOptions } from "../client/http.ts";
import { countsAfter } from "../schema/counted-votes.ts";
import type { Delegation } from "../schema/delegation.ts";
import type { Rule } from "../schema/rule.ts";
import type { Votes } from "../schema/votes.ts";
import { answersAll } from "./rights.ts";

type Asking = Pick<Delegation, "target" | "delegator" | "interrupt">;

/** How long the setting is not read again. */
const FRESH_MS = 10_000;

export class Counted {
  readonly #admin: Admin;
  readonly #principal: string;
  /** In milliseconds since 1970, by the broker's clock, which decides on escalations. */
  readonly now: () => number;
  readonly #read = new Map<string, { readonly votes: Votes | null; readonly at: number }>();

  constructor(connection: ConnectionOptions, principal: string, now: () => number) {
    this.#admin = new Admin(connection);
    this.#principal = principal;
    this.now = now;
  }

  /** Reads the `votes` of the agents that ask for approvals, once each, unless they were read just now. */
  async read(delegations: Iterable<Asking>, freshMs = FRESH_MS): Promise<void> {
    const targets = new Set<string>();
    for (const { target, interrupt } of delegations) if (interrupt?.votes) targets.add(target);
    for (const target of targets) {
      const known = this.#read.get(target);
      if (known && this.now() - known.at < freshMs) continue;
      const votes = await votesOf(this.#admin, target);
      // What could not be read is not known any more.
      if (votes === undefined) this.#read.delete(target);
      else this.#read.set(target, { votes, at: this.now() });
    }
  }

  /** At this moment. Everybody who may answer can deny. */
  isCounted({ target, delegator, interrupt }: Asking): boolean {
    const votes = this.#read.get(target)?.votes;
    if (!votes || !interrupt?.votes) return true;
    const after = countsAfter(votes, this.#principal, delegator);
    return after !== null && Date.parse(interrupt.raised_at) + after <= this.now();
  }
}

/** Who reads, and whether their approvals count. */
export async function readerOf(
  connection: ConnectionOptions,
): Promise<{ readonly principal: string; readonly counted: Counted }> {
  const { principal, now } = await new Admin(connection).status();
  const ahead = Date.parse(now) - Date.now();
  return { principal, counted: new Counted(connection, principal, () => Date.now() + ahead) };
}

/** Whether an approval of the reader counts for its open question. */
export async function isCounted(connection: ConnectionOptions, asking: Asking): Promise<boolean> {
  if (!asking.interrupt?.votes) return true;
  const { counted } = await readerOf(connection);
  await counted.read([asking]);
  return counted.isCounted(asking);
}

/** Why the approvals of a rule never count, as a sentence; undefined: they may. A rule counts only from the beginning. */
export async function whyNeverCounted(
  connection: ConnectionOptions,
  { agent, by, decision }: Pick<Rule, "agent" | "by" | "decision">,
): Promise<string | undefined> {
  const votes = decision === "approve" ? await votesOf(new Admin(connection), agent) : null;
  // The rules of others answer only what they delegate themselves.
  if (!votes || countsAfter(votes, by, answersAll(by) ? "" : by) === 0) return undefined;
  return `this rule approves nothing: by its setting votes, agent '${agent}' does not count approvals of ${by} from the beginning.`;
}

/** Undefined: it could not be read. */
async function votesOf(admin: Admin, agent: string): Promise<Votes | null | undefined> {
  const found = await admin.getAgent(agent).catch((error: unknown) => {
    if (error instanceof ErrandApiError) return undefined;
    throw error;
  });
  return found && (found.votes ?? null);
}
