import type { Signal } from "@preact/signals";
import type { Schedule } from "../../schema/schedule.ts";
import { inUnits, UNIT_NAMES } from "../agents/duration.ts";

interface Props {
  readonly before: Schedule | undefined;
  readonly isCron: Signal<boolean>;
}

const OVERLAPS = [
  ["queue", "delegate all the same"],
  ["skip", "leave it out"],
  ["cancel_running", "cancel the earlier one"],
] as const;
const MISSED = [
  ["one", "make the newest"],
  ["skip", "leave them out"],
  ["all", "make all, up to 100"],
] as const;

/** When it delegates, and what happens when that does not go as planned. */
export function CalendarFields({ before, isCron }: Props) {
  const every = inUnits(before?.every_seconds ?? 3600);
  return (
    <>
      <label>
        <span>When</span>
        <select
          name="calendar"
          value={isCron.value ? "cron" : "every"}
          onChange={({ currentTarget }) => {
            isCron.value = currentTarget.value === "cron";
          }}
        >
          <option value="cron">at times of a calendar</option>
          <option value="every">again and again after a time</option>
        </select>
      </label>
      {isCron.value ? (
        <>
          <label key="times">
            <span>
              Times <small>minute, hour, day, month, weekday</small>
            </span>
            <input
              name="cron"
              required
              autocomplete="off"
              placeholder="30 9 * * MON-FRI"
              defaultValue={before?.cron ?? ""}
            />
          </label>
          <label key="zone">
            <span>Time zone</span>
            <input
              name="time_zone"
              required
              list="time-zones"
              defaultValue={before?.time_zone ?? Intl.DateTimeFormat().resolvedOptions().timeZone}
            />
          </label>
          <datalist id="time-zones">
            {Intl.supportedValuesOf("timeZone").map((zone) => (
              <option key={zone} value={zone} />
            ))}
          </datalist>
        </>
      ) : (
        <>
          <label key="every">
            <span>Every</span>
            <input
              name="every"
              type="number"
              min={1}
              step="any"
              required
              defaultValue={String(every.number)}
            />
          </label>
          <label key="unit">
            <span>Unit</span>
            <select name="every_unit">
              {UNIT_NAMES.map((name) => (
                <option key={name} selected={name === every.unit}>
                  {name}
                </option>
              ))}
            </select>
          </label>
        </>
      )}
      <Choice name="overlap" label="While an earlier one runs" choices={OVERLAPS} before={before?.overlap} />
      <Choice name="missed" label="After the broker was away" choices={MISSED} before={before?.missed} />
    </>
  );
}

interface ChoiceProps {
  readonly name: string;
  readonly label: string;
  readonly choices: readonly (readonly [string, string])[];
  readonly before: string | undefined;
}

/** The first is the default. */
function Choice({ name, label, choices, before = choices[0]?.[0] }: ChoiceProps) {
  return (
    <label>
      <span>{label}</span>
      <select name={name}>
        {choices.map(([value, words]) => (
          <option key={value} value={value} selected={value === before}>
            {words}
          </option>
        ))}
      </select>
    </label>
  );
}
