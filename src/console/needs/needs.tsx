import { useEffect, useRef } from "preact/hooks";
import { hasQuestions } from "../data/flights.ts";
import { isOperator } from "../session/rights.ts";
import { Empty } from "../ui/empty.tsx";
import { useFirst } from "../ui/use-first.tsx";
import { notes, rememberAsked } from "./answers.ts";
import { Several } from "./lazy-fields.ts";
import { mine } from "./mine.ts";
import { moveFocusTo } from "./moved-focus.ts";
import { NoteCard } from "./note-card.tsx";
import { QuestionCard } from "./question-card.tsx";

/** Every question is a form; thousands of forms would hold up the page. */
const SHOWN = 50;

/** Everything that waits for the reader. */
export function Needs() {
  const questions = mine.value;
  for (const flight of questions) rememberAsked(flight);
  const open = new Set(questions.map(({ interrupt }) => interrupt?.id));
  const over = notes.entries().filter(([id]) => !open.has(id));
  const section = useKeptFocus();
  const { shown, more } = useFirst(questions, SHOWN);
  return (
    <section class="needs" aria-labelledby="needs-title" ref={section}>
      <h1 id="needs-title" tabIndex={-1}>
        Needs you {questions.length > 0 && <span class="badge">{questions.length}</span>}
      </h1>
      <p class="sr-only" role="status">
        {questions.length > 0
          ? `${questions.length} waiting for you`
          : hasQuestions.value && "Nothing waits for you"}
      </p>
      {questions.length > 1 && <Several questions={shown} />}
      {over.map(([id, note]) => (
        <NoteCard key={id} note={note} />
      ))}
      {shown.map((flight) => (
        <QuestionCard key={flight.interrupt?.id} flight={flight} />
      ))}
      {more}
      {questions.length === 0 &&
        over.length === 0 &&
        (hasQuestions.value ? <NothingNeeded /> : <p class="loading">Reading what waits …</p>)}
    </section>
  );
}

/** When the focused question is answered or gone, the focus moves to the one in its place, or to the heading. */
function useKeptFocus() {
  const section = useRef<HTMLElement>(null);
  const place = useRef(-1);
  const cards = () => [...(section.current?.querySelectorAll<HTMLElement>("[data-question]") ?? [])];
  useEffect(() => {
    const remember = ({ target }: FocusEvent) => {
      const card = target instanceof Element ? target.closest<HTMLElement>("[data-question]") : null;
      place.current = card && section.current?.contains(card) ? cards().indexOf(card) : -1;
    };
    document.addEventListener("focusin", remember);
    return () => document.removeEventListener("focusin", remember);
  }, []);
  useEffect(() => {
    if (place.current < 0 || document.activeElement !== document.body) return;
    const left = cards();
    const next = left[Math.min(place.current, left.length - 1)];
    if (next) moveFocusTo(next);
    else section.current?.querySelector("h1")?.focus();
  });
  return section;
}

function NothingNeeded() {
  return (
    <Empty title="Nothing waits for you" line={isOperator.value ? "npx errand demo" : undefined}>
      When an agent asks something that you may answer, it appears here, with what it proposes and how long it
      waits.{isOperator.value && " This runs an example that asks:"}
    </Empty>
  );
}
