import { type Signal, useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import * as z from "zod";
import { Schedules as Client } from "../../client/schedules.ts";
import type { Schedule } from "../../schema/schedule.ts";
import { agents } from "../data/agents.ts";
import { session } from "../session/session.ts";
import { Problem } from "../ui/problem.tsx";
import { useAction } from "../ui/use-action.ts";
import { keptAs } from "../ui/use-kept.ts";
import { CalendarFields } from "./calendar-fields.tsx";
import { inputOf, isFixed, patchOf, type Text, taskOf } from "./input.ts";

/** What was typed into the form of a new one, by the names of the fields; none: nothing. */
export const useTyped = keptAs(z.record(z.string(), z.string()));
export const NONE: Readonly<Record<string, string>> = {};

interface Props {
  /** What is edited; undefined: it is new. */
  readonly schedule?: Schedule;
  /** Of a new one. */
  readonly typed?: Signal<Record<string, string>>;
  /** `isChanged`: it was sent, and not left. */
  readonly onDone: (isChanged: boolean) => void;
}

/** Creates or edits a schedule. Of an edit, exactly what was changed is sent. */
export function ScheduleForm({ schedule, typed, onDone }: Props) {
  // As it was when the form was opened: the list is read again meanwhile.
  const before = useRef(schedule).current;
  const isCron = useSignal(before?.every_seconds === undefined && typed?.peek().calendar !== "every");
  const form = useRef<HTMLFormElement>(null);
  useLayoutEffect(() => {
    for (const [name, value] of Object.entries(typed?.peek() ?? NONE)) {
      const field = form.current?.elements.namedItem(name);
      if (field && "value" in field) field.value = value;
    }
  }, []);
  const keep = () => {
    if (typed && form.current)
      typed.value = Object.fromEntries(
        [...new FormData(form.current)].map(([name, text]) => [name, `${text}`]),
      );
  };
  const { isRunning, error, run } = useAction();
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    if (!(event.currentTarget instanceof HTMLFormElement)) return;
    const values = new FormData(event.currentTarget);
    const text: Text = (name) => String(values.get(name) ?? "").trim();
    void run(async () => {
      const client = new Client(session.value?.connection.options);
      if (!before) await client.create(inputOf(text, isCron.value));
      else {
        const patch = patchOf(before, text, isCron.value);
        if (Object.keys(patch).length > 0) await client.patch(before.id, patch);
      }
      onDone(true);
    });
  };
  const fixed = before !== undefined && isFixed(before);
  return (
    <form
      class="fields schedule-form"
      ref={form}
      onInput={keep}
      aria-label={before ? "Edit the schedule" : "New schedule"}
      onSubmit={submit}
    >
      <label class="wide">
        <span>
          Name <small>optional</small>
        </span>
        <input name="name" maxLength={200} defaultValue={before?.name ?? ""} />
      </label>
      <label class="wide">
        <span>Agent</span>
        <input
          name="target"
          required
          list="schedule-agents"
          autocomplete="off"
          disabled={fixed}
          defaultValue={before ? String(before.delegation.target ?? "") : ""}
          placeholder="for example scout"
        />
      </label>
      <datalist id="schedule-agents">
        {agents.value?.map(({ name }) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <label class="wide">
        <span>Task</span>
        <textarea
          name="task"
          rows={3}
          required
          disabled={fixed}
          defaultValue={before ? taskOf(before) : ""}
        />
      </label>
      {fixed && (
        <p class="wide dim">
          Agent and task are changed by <code>errand schedule change</code>: this schedule has parts or a
          callback, which the form does not have.
        </p>
      )}
      <CalendarFields before={before} isCron={isCron} />
      <Problem error={error} />
      <div class="buttons wide">
        <button type="submit" class="primary" disabled={isRunning}>
          {before ? "Save" : "Create"}
        </button>
        <button type="button" onClick={() => onDone(false)}>
          {before ? "Keep as it is" : "Close"}
        </button>
      </div>
    </form>
  );
}
