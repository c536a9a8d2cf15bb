/**
 * Whether an approval of this person counts, by the agents' `votes`, so that the CLI offers none that the broker would refuse.
 * Limit: where the setting cannot be read, it is taken to count.
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

export class Counted {
  readonly #admin: Admin;
  readonly #principal: string;
  readonly #votes = new Map<string, Votes | null>();

  constructor(connection: ConnectionOptions, principal: string) {
    this.#admin = new Admin(connection);
    this.#principal = principal;
  }

  /** Reads the `votes` of the agents that ask for approvals, once each. */
  async read(delegations: Iterable<Asking>): Promise<void> {
    for (const { target, interrupt } of delegations)
      if (interrupt?.votes && !this.#votes.has(target))
        this.#votes.set(target, await votesOf(this.#admin, target));
  }

  /** Everybody who may answer can deny. */
  isCounted({ target, delegator, interrupt }: Asking): boolean {
    const votes = this.#votes.get(target);
    if (!votes || !interrupt?.votes) return true;
    const after = countsAfter(votes, this.#principal, delegator);
    return after !== null && Date.parse(interrupt.raised_at) + after <= Date.now();
  }
}

/** Whether an approval of the reader counts for its open question. */
export async function isCounted(connection: ConnectionOptions, asking: Asking): Promise<boolean> {
  if (!asking.interrupt?.votes) return true;
  const counted = new Counted(connection, (await new Admin(connection).status()).principal);
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

async function votesOf(admin: Admin, agent: string): Promise<Votes | null> {
  const found = await admin.getAgent(agent).catch((error: unknown) => {
    if (error instanceof ErrandApiError) return undefined;
    throw error;
  });
  return found?.votes ?? null;
}
