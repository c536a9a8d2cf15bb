/**
 * Records who decided about a proposed action, and what they changed in it, in the audit log. Limit: an entry is small, so
 * it has the first changes only, or only their number; the event of the answer has more.
 */
import type { AnswerWay } from "../../schema/answered.ts";
import type { Interrupt } from "../../schema/delegation.ts";
import { LIMITS } from "../../schema/limits.ts";
import type { Principal } from "../access/access.ts";
import type { Broker } from "../broker.ts";
import { audit } from "../upkeep/audit.ts";
import { type Asked, type Inputs, shownChanges } from "./shown-changes.ts";

export type Audits = Pick<Broker, "clock" | "log" | "redis">;

/** In the changes of one entry, as JSON. */
const MAX_CHARACTERS = 480;

interface Decided {
  /** The delegation. */
  readonly id: string;
  readonly target: string;
  readonly via: AnswerWay;
  readonly open: Asked & Pick<Interrupt, "id">;
  readonly inputs: Inputs;
  /** More approvals are needed. */
  readonly isVote?: boolean;
  /** The rules that decided, by request_id. */
  readonly rules?: ReadonlyMap<string, string>;
}

/** An answer without a decision on an action, such as a text, leaves no entry. */
export async function auditDecisions(
  broker: Audits,
  principal: Principal,
  { id, target, via, open, inputs, isVote = false, rules }: Decided,
): Promise<void> {
  const changes = shownChanges(open, inputs, MAX_CHARACTERS);
  const decisions = inputs.flatMap(([request_id, { decision }]) => {
    const action = open.requests.find((one) => one.request_id === request_id)?.action?.name;
    if (action === undefined || decision === undefined) return [];
    const rule = rules?.get(request_id);
    return [{ action, decision, ...(rule !== undefined && { rule }), ...changes?.[request_id] }];
  });
  if (decisions.length === 0) return;
  const head = { target, interrupt_id: open.id, via, ...(isVote && { vote: true }) };
  const count = (one: string) => decisions.filter(({ decision }) => decision === one).length;
  const forms = [
    { ...head, decisions },
    { ...head, decisions: decisions.map(({ changes: _, ...rest }) => rest) },
  ];
  const fitting = forms.find(
    (form) => Buffer.byteLength(JSON.stringify(form)) <= LIMITS.audit_entry_bytes.value,
  );
  const details = fitting ?? { ...head, approved: count("approve"), denied: count("deny") };
  await audit(broker, principal, "delegation.decide", id, details);
}
