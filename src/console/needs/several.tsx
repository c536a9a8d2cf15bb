/**
 * Several questions decided together: those that are selected. Each is decided by the button of its own form, so that an
 * edit or a comment in it counts, and each can be taken back.
 */
import { computed, effect, signal } from "@preact/signals";
import { isDeniable } from "../../schema/choices.ts";
import type { Interrupt } from "../../schema/delegation.ts";
import { session } from "../session/session.ts";
import { undo, waitingIds } from "./answers.ts";
import { mine } from "./mine.ts";
import { pending } from "./outcomes.ts";
import { type Decision, isDecidable } from "./proposal.ts";

/** The ids of questions. Some may have been answered meanwhile. */
const selected = signal<ReadonlySet<string>>(new Set());
// Who signs in next has selected nothing.
effect(() => {
  void session.value;
  selected.value = new Set();
});

/** The ids of the open questions that can be decided together. */
const decidable = computed(() =>
  mine.value.flatMap(({ interrupt }) => (interrupt && isDecidable(interrupt) ? interrupt.id : [])),
);

function select(id: string, isSelected: boolean): void {
  const ids = new Set(selected.value);
  if (isSelected) ids.add(id);
  else ids.delete(id);
  selected.value = ids;
}

/** A box in the head of a question that can be decided together with others. */
export function SelectQuestion({
  interrupt,
  task,
}: {
  readonly interrupt: Interrupt;
  readonly task: string;
}) {
  if (decidable.value.length < 2 || !decidable.value.includes(interrupt.id)) return null;
  return (
    // A finger needs more room than the box.
    <label class="select" title="Select, to decide several at once">
      <input
        type="checkbox"
        name="select"
        aria-label={`Select, to decide several at once: ${task}`}
        checked={selected.value.has(interrupt.id)}
        onChange={({ currentTarget }) => select(interrupt.id, currentTarget.checked)}
      />
    </label>
  );
}

/** The buttons for the selected questions, among those that are drawn. */
export function Several({ questions }: { readonly questions: readonly { readonly id: string }[] }) {
  const drawn = new Set(questions.map(({ id }) => id));
  const open = decidable.value.filter((id) => drawn.has(id));
  const waiting = waitingIds();
  const chosen = open.filter((id) => selected.value.has(id) && !pending.get(id));
  if (chosen.length === 0 && waiting.length < 2) return null;
  // Its agent may offer something else in place of deny.
  const deniable = mine.value.filter(
    ({ interrupt }) => interrupt && chosen.includes(interrupt.id) && isDeniable(interrupt),
  ).length;
  const decide = (decision: Decision) => {
    for (const id of chosen) buttonOf(id, decision)?.click();
    // An answer that could not be sent, such as an edit that does not fit, leaves its question selected.
    selected.value = new Set(chosen.filter((id) => pending.get(id) === undefined));
  };
  return (
    <fieldset class="several" aria-label="Several questions">
      {chosen.length === 0 ? (
        <>
          <span>{waiting.length} not sent yet</span>
          <button type="button" onClick={() => waiting.map(undo)}>
            Undo all
          </button>
        </>
      ) : (
        <>
          <button type="button" class="approve" onClick={() => decide("approve")}>
            Approve {chosen.length}
          </button>
          {deniable > 0 && (
            <button type="button" onClick={() => decide("deny")}>
              Deny {deniable}
            </button>
          )}
          {chosen.length < open.length && (
            <button
              type="button"
              class="quiet"
              onClick={() => {
                selected.value = new Set(open);
              }}
            >
              Select all {open.length}
            </button>
          )}
          <button
            type="button"
            class="quiet"
            onClick={() => {
              selected.value = new Set();
            }}
          >
            Select none
          </button>
        </>
      )}
    </fieldset>
  );
}

/** Null if the question is not drawn, or if its edited arguments are not JSON. */
const buttonOf = (id: string, decision: Decision): HTMLButtonElement | null =>
  document.querySelector(`.needs [data-question="${CSS.escape(id)}"] button[name=${decision}]:enabled`);
