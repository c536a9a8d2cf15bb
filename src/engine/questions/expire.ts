/**
 * The error of a delegation whose question nobody answered in time. It says who had been notified and how, as far as that was
 * known then. Limit: notifications are noted in another slot, so the script cannot read them itself.
 */
import type { Command } from "../../lifecycle/command.ts";
import { failure } from "../../lifecycle/numbers.ts";
import type { Outcome } from "../../lifecycle/outcome.ts";
import { unansweredText } from "../../schema/told-text.ts";
import { type Warns, warn } from "../after-move.ts";
import type { Broker } from "../broker.ts";
import { readTold } from "../subscriptions/told.ts";

type Unanswered = Extract<Outcome, { kind: "unanswered" }>;

/** With these parameters, `due` fails the delegation, unless its question or its votes changed meanwhile: then the sweep looks again. */
export async function unansweredParams(
  broker: Warns & Pick<Broker, "redis">,
  id: string,
  { code, interrupt_id, ...question }: Unanswered,
): Promise<NonNullable<Command["params"]>> {
  const told = await readTold(broker.redis, id, interrupt_id).catch((error: unknown) => {
    // The failure does not wait for the names: the master that has them may be away for long.
    warn(broker, error, "who was notified of an expired question is not known");
  });
  const isDeadline = code === "deadline_exceeded";
  const message = unansweredText({ ...question, isDeadline, ...(told && { told }) });
  const { given } = question;
  return {
    error: JSON.stringify({ ...failure(code, message), told }),
    code,
    of_question: interrupt_id,
    given,
  };
}
