import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { LIVE_STATES, TERMINAL_STATES } from "../../schema/delegation.ts";
import { useKey } from "../app/keys.ts";
import { go, hrefWith } from "../app/route.ts";
import { agents } from "../data/agents.ts";
import { FAILED_STATES } from "../data/figures.ts";
import { STATE_WORDS } from "../ui/words.ts";
import { type FieldName, instantOf, localOf } from "./filter.ts";

const TEXT = { type: "text" } as const;
const TIME = { type: "datetime-local" } as const;

const textOf = (params: URLSearchParams, { name, type }: { readonly name: string; readonly type: string }) =>
  type === TIME.type ? localOf(params.get(name)) : (params.get(name) ?? "");

/** The wait after the last key. */
const PAUSE_MS = 300;

interface Props {
  readonly params: URLSearchParams;
  /** On a small screen, whether only the text is shown, so that the results are in view. */
  readonly isFolded: boolean;
  readonly onFold: () => void;
}

/** The fields write the URL, and the URL is what is searched: every search can be shared. */
export function FilterForm({ params, isFolded, onFold }: Props) {
  const search = useRef<HTMLInputElement>(null);
  const form = useRef<HTMLFormElement>(null);
  const showMore = useSignal(["delegator", "error_code", "since", "until"].some((name) => params.get(name)));
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useKey("/", () => search.current?.focus());
  useLayoutEffect(() => {
    // On a phone the keyboard would cover the list.
    if (innerWidth >= 800 && !params.get("open")) search.current?.focus();
    return () => clearTimeout(timer.current);
  }, []);
  // When a link or the history changes the search, write it into the fields, but not while somebody types.
  useLayoutEffect(() => {
    if (timer.current !== undefined) return;
    for (const field of form.current?.querySelectorAll("input") ?? []) field.value = textOf(params, field);
  }, [params]);
  /** Not in the URL yet. */
  const changes = useRef<Partial<Record<FieldName, string>>>({});
  const apply = () => {
    clearTimeout(timer.current);
    timer.current = undefined;
    go(hrefWith(changes.current), { replace: true });
    changes.current = {};
  };
  const set = (name: FieldName, value: string) => {
    changes.current[name] = value;
    apply();
  };
  const setLater = (name: FieldName, value: string) => {
    changes.current[name] = value;
    clearTimeout(timer.current);
    timer.current = setTimeout(apply, PAUSE_MS);
  };
  const field = (name: FieldName, label: string, more: typeof TEXT | typeof TIME, placeholder = "") => (
    <label>
      <span>{label}</span>
      <input
        {...more}
        name={name}
        placeholder={placeholder}
        defaultValue={textOf(params, { name, ...more })}
        onInput={({ currentTarget: { value } }) =>
          // An instant, so that a search means the same in every time zone.
          setLater(name, more === TIME ? (instantOf(value) ?? "") : value)
        }
      />
    </label>
  );
  return (
    <search>
      <form class="filter" ref={form} onSubmit={(event) => event.preventDefault()}>
        <input
          ref={search}
          type="search"
          name="q"
          aria-label="Text of the task"
          placeholder="Text of the task"
          maxLength={100}
          defaultValue={params.get("q") ?? ""}
          onInput={({ currentTarget }) => setLater("q", currentTarget.value)}
        />
        <button type="button" class="unfold" aria-expanded={!isFolded} onClick={onFold}>
          Filters
        </button>
        <select
          aria-label="State"
          value={params.get("state") ?? ""}
          onChange={({ currentTarget }) => set("state", currentTarget.value)}
        >
          <option value="">All states</option>
          <option value="live">Live</option>
          <option value={FAILED_STATES}>failed or rejected</option>
          {[...LIVE_STATES, ...TERMINAL_STATES].map((state) => (
            <option key={state} value={state}>
              {STATE_WORDS[state]}
            </option>
          ))}
        </select>
        <select
          aria-label="Agent"
          value={params.get("target") ?? ""}
          onChange={({ currentTarget }) => set("target", currentTarget.value)}
        >
          <option value="">All agents</option>
          {agents.value?.map(({ name }) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
        <button
          type="button"
          class="quiet more-filters"
          aria-expanded={showMore.value}
          onClick={() => {
            showMore.value = !showMore.value;
          }}
        >
          {showMore.value ? "Fewer filters" : "More filters"}
        </button>
        {showMore.value && (
          <div class="filter-more">
            {field("delegator", "Delegator", TEXT, "for example caller:alice")}
            {field("error_code", "Error", TEXT, "for example disk_full")}
            {field("since", "From", TIME)}
            {field("until", "Before", TIME)}
            {field("ended_since", "Ended since", TIME)}
          </div>
        )}
      </form>
    </search>
  );
}
