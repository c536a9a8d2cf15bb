import { moveFocus, useKey } from "../app/keys.ts";
import { isLoaded } from "../data/flights.ts";
import { Empty } from "../ui/empty.tsx";
import { notes, rememberAsked } from "./answers.ts";
import { mine } from "./mine.ts";
import { NoteCard } from "./note-card.tsx";
import { QuestionCard } from "./question-card.tsx";

/** Everything that waits for the reader. */
export function Needs() {
  const questions = mine.value;
  for (const flight of questions) rememberAsked(flight);
  const open = new Set(questions.map(({ interrupt }) => interrupt?.id));
  const over = notes.entries().filter(([id]) => !open.has(id));
  useKey("a", () => press("approve"));
  useKey("d", () => press("deny"));
  return (
    <section class="needs" aria-labelledby="needs-title">
      <h1 id="needs-title">
        Needs you {questions.length > 0 && <span class="badge">{questions.length}</span>}
      </h1>
      <p class="sr-only" role="status">
        {questions.length === 0 ? "Nothing waits for you" : `${questions.length} waiting for you`}
      </p>
      {over.map(([id, note]) => (
        <NoteCard key={id} note={note} />
      ))}
      {questions.map((flight) => (
        <QuestionCard key={flight.interrupt?.id} flight={flight} />
      ))}
      {questions.length === 0 && over.length === 0 && isLoaded.value && <NothingNeeded />}
    </section>
  );
}

function NothingNeeded() {
  return (
    <Empty title="Nothing waits for you">
      When an agent asks something that you may answer, it appears here, with what it proposes and how long it
      waits.
    </Empty>
  );
}

/** Presses the button of the focused question; without one, focuses the first question instead of deciding anything. */
function press(name: "approve" | "deny"): void {
  const card = document.activeElement?.closest("[data-question]");
  // The form of an answer on its way is hidden.
  if (card) card.querySelector<HTMLButtonElement>(`:not([hidden]) > .request button[name=${name}]`)?.click();
  else focusFirst();
}

function focusFirst(): void {
  const first = document.querySelector<HTMLElement>("[data-question]");
  if (first) first.focus();
  else moveFocus(1);
}
