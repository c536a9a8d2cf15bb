import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { hrefOf } from "../app/route.ts";
import { hasQuestions } from "../data/delegations.ts";
import { Age } from "../ui/age.tsx";
import { Empty } from "../ui/empty.tsx";
import { Said } from "../ui/said.tsx";
import { News, useSteady } from "../ui/steady.tsx";
import { useFirst } from "../ui/use-first.tsx";
import { taskText } from "../ui/words.ts";
import { Several } from "./lazy-fields.tsx";
import { type Note, pending } from "./outcomes.ts";
import { QuestionCard } from "./question-card.tsx";
import { askedNow, outcomeOf } from "./rows.ts";
import { NeedsTitle } from "./title.tsx";

/** Every question is a form; thousands of forms would hold up the page. */
const SHOWN = 50;

/** Everything that waits for the reader. */
export function Needs() {
  const { isOpen, rows: asked } = askedNow();
  const list = useRef<HTMLDivElement>(null);
  const { rows, waiting, isUsed, showAll } = useSteady(list, asked, ({ id }) => id);
  const heading = useLostFocus(list);
  /** The questions that are drawn as notes. */
  const folded = useRef(new Set<string>());
  const { shown, more } = useFirst(rows, SHOWN, "question");
  return (
    <section class="needs" aria-label="Questions">
      <NeedsTitle heading={heading} />
      <div class="steady" ref={list}>
        <News of="question" count={waiting} onShow={showAll} />
        {shown.map((one) => {
          const { id, listed } = one;
          const outcome = outcomeOf(one, isOpen);
          // While the list is in use, a card keeps its height, and so does a note.
          if (outcome && !isUsed) folded.current.add(id);
          return outcome && folded.current.has(id) ? (
            <NoteCard key={id} note={outcome} />
          ) : (
            <QuestionCard key={id} listed={listed} note={outcome} />
          );
        })}
        {more}
        {rows.length > 1 && (
          <div class="dock">
            <Several questions={shown} />
          </div>
        )}
      </div>
      {rows.length === 0 &&
        (hasQuestions.value ? <NothingNeeded /> : <p class="loading">Reading what waits …</p>)}
    </section>
  );
}

/** The focus goes to the heading when what had it is gone: no key that was meant for it decides another question. */
function useLostFocus(list: { readonly current: Element | null }) {
  const heading = useRef<HTMLHeadingElement>(null);
  const last = useRef<Element | null>(null);
  useEffect(() => {
    const remember = ({ target }: FocusEvent) => {
      last.current = target instanceof Element && list.current?.contains(target) ? target : null;
    };
    document.addEventListener("focusin", remember);
    return () => document.removeEventListener("focusin", remember);
  }, []);
  useLayoutEffect(() => {
    const isLost = last.current && (!last.current.isConnected || last.current.closest("[inert]"));
    if (!isLost || document.activeElement !== document.body || pending.keys().length > 0) return;
    last.current = null;
    heading.current?.focus({ preventScroll: true });
  });
  return heading;
}

export function NothingNeeded() {
  return (
    <Empty title="Nothing waits for you">
      When an agent asks something that you may answer, it appears here, with what it proposes and how long it
      waits.
    </Empty>
  );
}

/** The outcome of a question that was here a moment ago. */
function NoteCard({ note }: { readonly note: Note }) {
  const { listed, text, at } = note;
  return (
    <div class="question over">
      <a class="question-task" href={hrefOf(listed.id)}>
        <Said>{taskText(listed)}</Said>
      </a>
      <p>
        {/* An age that grows every second is not announced. */}
        <span role="status">{text}</span> {at !== undefined && <Age at={at} ago />}
      </p>
    </div>
  );
}
