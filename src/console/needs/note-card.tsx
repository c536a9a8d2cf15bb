import { hrefOf } from "../app/route.ts";
import { Age } from "../ui/age.tsx";
import { Said } from "../ui/said.tsx";
import { taskText } from "../ui/words.ts";
import type { Note } from "./answers.ts";

/** The outcome of a question that was here a moment ago. */
export function NoteCard({ note }: { readonly note: Note }) {
  const { flight, text, at } = note;
  return (
    <div class="question over">
      <a class="question-task" href={hrefOf(flight.id)}>
        <Said>{taskText(flight)}</Said>
      </a>
      <p>
        {/* An age that grows every second is not announced. */}
        <span role="status">{text}</span> {at !== undefined && <Age at={at} ago />}
      </p>
    </div>
  );
}
