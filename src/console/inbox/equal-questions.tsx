import { useRef } from "preact/hooks";
import type { Interrupt } from "../../schema/delegation.ts";
import { votedOtherwise } from "../../schema/voted-answers.ts";
import { hrefOf } from "../app/route.ts";
import { listedOf } from "../data/delegations.ts";
import { answerLater, undo, waitingIds } from "../needs/answers.ts";
import { ballotKey, moreText } from "../needs/ballot.ts";
import { isApproved, isForOthers } from "../needs/mine.ts";
import { failures, pending } from "../needs/outcomes.ts";
import type { Decision } from "../needs/proposal.ts";
import { type Asked, type IsOpen, outcomeOf } from "../needs/rows.ts";
import { delegatorOf } from "../session/rights.ts";
import { Fold } from "../ui/fold.tsx";
import { InPlace } from "../ui/in-place.tsx";
import { Output } from "../ui/output.tsx";
import { Problem } from "../ui/problem.tsx";
import { Said } from "../ui/said.tsx";
import { News, useSteady } from "../ui/steady.tsx";
import { useFirst } from "../ui/use-first.tsx";
import { count, taskText } from "../ui/words.ts";
import type { Group } from "./equal.ts";

/** Questions, each with what its agent says; more are shown on request. */
const SHOWN = 50;

interface Props {
  readonly group: Group;
  readonly isOpen: IsOpen;
}

/** All questions of a group, and the buttons that decide them together: those that are drawn, and no others. */
export function EqualQuestions({ group, isOpen }: Props) {
  // One that comes later is decided by nobody who has not asked to see it.
  const place = useRef<HTMLElement>(null);
  const { rows, waiting, showAll } = useSteady(place, group.members, ({ id }) => id, { isRead: () => true });
  const { shown, more } = useFirst(rows, SHOWN, "question");
  // One that was answered by itself is not answered again.
  const open = shown.filter((one) => isOpen(one.id) && pending.get(one.id) === undefined && isAsShown(one));
  const [first] = group.members;
  const isChanged = first.listed.interrupt !== null && votedOtherwise(first.listed.interrupt) !== undefined;
  /** Those that the buttons answered last. */
  const together = useRef<readonly string[]>([]);
  const waitingNow = waitingIds();
  const given = together.current.filter((id) => waitingNow.includes(id));
  const decide = (decision: Decision, done: string) => {
    together.current = open.map(({ id }) => id);
    for (const { listed } of open)
      if (listed.interrupt)
        answerLater({
          listed,
          interrupt: listed.interrupt,
          answer: answerTo(listed.interrupt, decision),
          done,
        });
  };
  if (rows.length < 2) return null;
  return (
    <section class="equal" aria-label="Equal questions" ref={place}>
      <h2>{count(rows.length, "equal question")}</h2>
      <p class="dim">The same action with the same arguments, for each of these:</p>
      <News of="question" count={waiting} onShow={showAll} />
      <ul>
        {shown.map((asked) => (
          <EqualRow key={asked.id} asked={asked} isOpen={isOpen} />
        ))}
      </ul>
      {more}
      <p class="dim">An edit or a comment above is not sent with them.</p>
      <div class="in-place-of">
        <div class="answer buttons" inert={given.length > 0}>
          <button
            type="button"
            class="approve"
            disabled={open.length < 2}
            onClick={() => decide("approve", "Approved")}
          >
            Approve all {open.length}, as {isChanged ? "changed" : "proposed"}
          </button>
          <button type="button" disabled={open.length < 2} onClick={() => decide("deny", "Denied")}>
            Deny all {open.length}
          </button>
        </div>
        {given.length > 0 && (
          <InPlace
            button={
              <button type="button" onClick={() => given.map(undo)}>
                Undo all
              </button>
            }
          >
            {given.length} not sent yet.
          </InPlace>
        )}
      </div>
    </section>
  );
}

/** The question as it is now; a row that keeps its place may be older. */
const currentOf = ({ listed }: Asked): Interrupt | null =>
  listedOf(listed.id)?.value.interrupt ?? listed.interrupt;

/** Whether it waits for the reader, and nobody has approved something else since it was drawn. */
function isAsShown(asked: Asked): boolean {
  const now = currentOf(asked);
  const { interrupt } = asked.listed;
  if (now === null || interrupt === null || isForOthers({ ...asked.listed, interrupt: now })) return false;
  return ballotKey(now) === ballotKey(interrupt);
}

/** Approves what others have approved already, if they changed it. */
function answerTo(interrupt: Interrupt, decision: Decision) {
  const answers = decision === "approve" ? votedOtherwise(interrupt) : undefined;
  return answers ? { answers } : { decision };
}

function EqualRow({ asked, isOpen }: { readonly asked: Asked; readonly isOpen: IsOpen }) {
  const { id, listed } = asked;
  const [request] = listed.interrupt?.requests ?? [];
  const given = pending.get(id);
  const now = currentOf(asked);
  const vote = isApproved(now) && now ? `You approved. ${moreText(now)}` : undefined;
  const outcome = given ? `${given.done}, not sent yet` : (outcomeOf(asked, isOpen)?.text ?? vote);
  return (
    <li class={isOpen(id) ? "" : "dim"}>
      <a href={hrefOf(listed.id)}>
        <Said>{taskText(listed)}</Said>
      </a>{" "}
      <span class="dim">for {delegatorOf(listed)}</span>
      {request && (
        <Fold>
          <Output parts={request.message.parts} />
        </Fold>
      )}
      {outcome !== undefined && <p role="status">{outcome}</p>}
      <Problem error={failures.get(id)} />
    </li>
  );
}
