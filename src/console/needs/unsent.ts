/** Answers that an absent broker did not take: when it is back, each is offered again, or it says who was faster. */
import { effect, untracked } from "@preact/signals";
import { lostSince } from "../data/connection.ts";
import { refresh } from "../data/delegations.ts";
import { checkSession, isCurrent } from "../session/session.ts";
import { noteOther, send } from "./answers.ts";
import { isApproved } from "./mine.ts";
import { failures, type Pending, pending, unsent } from "./outcomes.ts";

/** Sends an answer that was not sent, at once: it was already waited with. */
export function sendAgain(id: string): void {
  const one = unsent.get(id);
  if (!one || pending.get(id)) return;
  failures.delete(id);
  unsent.delete(id);
  pending.set(id, one);
  void send(id);
}

export const watchUnsent = (): (() => void) =>
  effect(() => {
    const waiting = unsent.entries();
    if (lostSince.value !== null) return;
    untracked(() => {
      for (const [, one] of waiting) void lookAgain(one);
    });
  });

/** Once the broker is back: whether it has the answer, or another one. */
async function lookAgain(one: Pending): Promise<void> {
  const { listed, interrupt, connection } = one;
  try {
    const { interrupt: open } = await connection.delegator.get(listed.id);
    if (!isCurrent(connection) || unsent.get(interrupt.id) !== one) return;
    if (open?.id === interrupt.id && !isApproved(open))
      return failures.set(interrupt.id, new Error(`${one.done}, but not sent: the broker was away.`));
    unsent.delete(interrupt.id);
    failures.delete(interrupt.id);
    if (open?.id === interrupt.id) await refresh(connection, listed.id);
    else await noteOther(connection, one);
  } catch (error) {
    // If the broker is away again, the next return looks.
    checkSession(error);
  }
}
