/** Why a question is no longer open, for a reader whose answer came too late. */
import type { Delegation, Interrupt } from "../../schema/delegation.ts";
import { decided, nameOf } from "../ui/words.ts";

type Read = Pick<Delegation, "history" | "state" | "error">;

export function whoAnswered({ history, state, error }: Read, { id, requests }: Interrupt): string {
  const asked = history.findLast(({ role }) => role === "ROLE_AGENT")?.messageId;
  // Nothing was asked after it.
  const isLast = requests.some(({ message }) => message.messageId === asked);
  const answer = history.findLast(
    ({ metadata }) => metadata?.interrupt_id === id && metadata.by !== undefined,
  );
  const { by, decision, vote } = answer?.metadata ?? {};
  const hasExpired = isLast && error?.code === "interrupt_expired";
  // Where it ended so, votes may have been too few.
  if (answer && !(vote === true && isLast && (hasExpired || state === "canceled")))
    return `${nameOf(String(by))} ${decided(decision)} this`;
  return hasExpired
    ? "Nobody answered in time"
    : `This question is no longer open: the delegation is ${state.replaceAll("_", " ")}`;
}
