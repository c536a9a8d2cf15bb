import { useComputed, useSignal } from "@preact/signals";
import { whenText } from "../../client/schedule-text.ts";
import { Schedules as Client } from "../../client/schedules.ts";
import type { Schedule, ScheduleRun } from "../../schema/schedule.ts";
import { adopt } from "../app/adopt.ts";
import { hrefOf } from "../app/route.ts";
import { now } from "../data/clock.ts";
import { isOperator, mayDelegate } from "../session/rights.ts";
import { session } from "../session/session.ts";
import { Age, Left } from "../ui/age.tsx";
import { CommandLine } from "../ui/command-line.tsx";
import { Confirm } from "../ui/confirm.tsx";
import { Empty } from "../ui/empty.tsx";
import { orGone } from "../ui/or-gone.ts";
import { Problem } from "../ui/problem.tsx";
import { useAction } from "../ui/use-action.ts";
import { useLoaded } from "../ui/use-loaded.ts";
import { Windowed } from "../ui/windowed.tsx";
import { NONE, ScheduleForm, useTyped } from "./schedule-form.tsx";
import { styles } from "./schedules.css";

adopt(styles);

/** How often the list is read again, ms. */
const AGAIN_MS = 10_000;

const clientOf = () => new Client(session.value?.connection.options);

/** What is delegated again and again: when each runs next, how it went last, and the buttons that change it. */
export function Schedules() {
  const round = useComputed(() => Math.floor(now.value / AGAIN_MS));
  const read = (_: unknown, signal: AbortSignal) => clientOf().list({ signal });
  const { value, error, reload } = useLoaded("schedules", read, round.value);
  const typed = useTyped("schedule", NONE);
  // The reader comes back from another view to what he typed.
  const isNew = useSignal(Object.keys(typed.peek()).length > 0);
  const close = (isChanged: boolean) => {
    isNew.value = false;
    typed.value = NONE;
    if (isChanged) reload();
  };
  return (
    <section aria-label="Schedules">
      <h1>
        Schedules {value !== null && value.length > 0 && <small>{value.length.toLocaleString("en")}</small>}
      </h1>
      {isNew.value ? (
        <ScheduleForm typed={typed} onDone={close} />
      ) : (
        mayDelegate.value && (
          <button
            type="button"
            onClick={() => {
              isNew.value = true;
            }}
          >
            New schedule
          </button>
        )
      )}
      <Problem error={error} />
      {value === null && !error && <p class="loading">Reading the schedules …</p>}
      {value?.length === 0 && (
        <Empty
          title="No schedule yet"
          line={
            <CommandLine
              command={'schedule create scout "read the news" --cron "30 9 * * MON-FRI" --zone Europe/Berlin'}
            />
          }
        >
          A schedule delegates again and again, at times of a calendar.
        </Empty>
      )}
      <Windowed items={value ?? []} keyOf={({ id }) => id} kind="tokens">
        {(schedule) => <Row schedule={schedule} onChange={reload} />}
      </Windowed>
    </section>
  );
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

function Row({ schedule, onChange }: { readonly schedule: Schedule; readonly onChange: () => void }) {
  const { id, name, owner, state, problem, next, last_runs, delegation } = schedule;
  const { isRunning, error, run } = useAction();
  const isEdited = useSignal(false);
  const isOwn = isOperator.value || session.value?.principal === owner;
  const target = textOf(delegation.target);
  const title = name ?? textOf(delegation.task).slice(0, 100);
  const act = (work: (client: Client) => Promise<unknown>) =>
    void run(async () => {
      await work(clientOf());
      onChange();
    });
  const [last] = last_runs;
  if (isEdited.value) {
    const close = (isChanged: boolean) => {
      isEdited.value = false;
      if (isChanged) onChange();
    };
    return <ScheduleForm schedule={schedule} onDone={close} />;
  }
  const remove = async () => {
    await orGone(clientOf().delete(id));
    onChange();
  };
  return (
    <div class="schedule">
      <b title={title}>{title || id}</b>
      <span>
        {owner} → {target}
      </span>
      <span class="dim">
        {whenText(schedule)}, {state}
        {next[0] !== undefined && (
          <>
            , next <Left until={next[0]} isBare />
          </>
        )}
        {last && (
          <>
            , last <Age at={last.at} ago />: <Result run={last} />
          </>
        )}
      </span>
      {problem && <span role="status">{problem.message}</span>}
      {isOwn && (
        <span class="buttons">
          <button
            type="button"
            aria-label={`Run now: ${title || id}`}
            disabled={isRunning}
            onClick={() => act((client) => client.run(id))}
          >
            Run now
          </button>
          {state === "active" ? (
            <button
              type="button"
              aria-label={`Pause ${title || id}`}
              disabled={isRunning}
              onClick={() => act((client) => client.pause(id))}
            >
              Pause
            </button>
          ) : (
            <button
              type="button"
              aria-label={`Resume ${title || id}`}
              disabled={isRunning}
              onClick={() => act((client) => client.resume(id))}
            >
              Resume
            </button>
          )}
          <button
            type="button"
            aria-label={`Edit ${title || id}`}
            onClick={() => {
              isEdited.value = true;
            }}
          >
            Edit
          </button>
          <Confirm
            verb="Delete"
            object={title || id}
            question="Delete this schedule?"
            quiet
            danger
            onConfirm={remove}
          >
            <p>It delegates nothing more. What it delegated goes on.</p>
          </Confirm>
        </span>
      )}
      <Problem error={error} />
    </div>
  );
}

function Result({ run: { delegation_id, skipped } }: { readonly run: ScheduleRun }) {
  if (delegation_id !== null) return <a href={hrefOf(delegation_id)}>delegated</a>;
  if (skipped === "overlap") return <>left out, the one before had not ended</>;
  return <>{skipped === "missed" ? "missed" : `refused (${skipped})`}</>;
}
