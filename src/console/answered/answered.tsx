/** What became of the questions: who answered what and how, what an edit changed, and what expired unanswered. */
import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { AnswersFilter } from "../../schema/answered.ts";
import { adopt } from "../app/adopt.ts";
import { go, href, hrefWith, route } from "../app/route.ts";
import { agents } from "../data/agents.ts";
import { session } from "../session/session.ts";
import { Empty } from "../ui/empty.tsx";
import { Problem } from "../ui/problem.tsx";
import { News, useSteady } from "../ui/steady.tsx";
import { nameOf } from "../ui/words.ts";
import { AnswerRow } from "./answer-row.tsx";
import { styles } from "./answered.css";
import { keyOf, useAnswers } from "./use-answers.ts";

adopt(styles);

/** The choices of what to show, by their values in the URL. */
const WHAT = [
  ["", "Everything", {}],
  ["approved", "Approved", { decision: "approve" }],
  ["denied", "Denied", { decision: "deny" }],
  ["expired", "Expired unanswered", { outcome: "expired" }],
] as const satisfies readonly (readonly [string, string, AnswersFilter])[];

function filterOf(params: URLSearchParams): AnswersFilter {
  const [, , what = {}] = WHAT.find(([value]) => value === (params.get("what") ?? "")) ?? [];
  return { ...what, target: params.get("agent") ?? undefined, by: params.get("by") ?? undefined };
}

export function Answered() {
  const { params } = route.value;
  const filter = filterOf(params);
  const people = useSignal<readonly string[]>([]);
  return (
    <section class="answered-view" aria-labelledby="answered-title">
      <div class="answered-head">
        <h1 id="answered-title">Answered</h1>
        <a href={href("needs")}>Open questions</a>
        <Filters people={people.value} params={params} />
      </div>
      <List key={JSON.stringify(filter)} filter={filter} people={people} />
    </section>
  );
}

interface ListProps {
  readonly filter: AnswersFilter;
  /** Takes up who answered. */
  readonly people: Signal<readonly string[]>;
}

function List({ filter, people }: ListProps) {
  const list = useRef<HTMLDivElement>(null);
  /** When the question in the first row was settled. */
  const top = useRef("");
  const { found, isComplete, isReading, error, more, again } = useAnswers(filter);
  const { rows, waiting, showAll } = useSteady(list, found, keyOf, {
    isRead: isScrolled,
    appends: ({ settled_at }) => settled_at <= top.current,
  });
  top.current = rows[0]?.settled_at ?? "";
  useEffect(() => {
    const known = people.peek();
    const all = new Set([...known, ...found.flatMap(({ by }) => by ?? [])]);
    if (all.size > known.length) people.value = [...all];
  }, [found]);
  const isFiltered = Object.values(filter).some((value) => value !== undefined);
  return (
    <>
      <Problem error={error} />
      <div class="steady" ref={list}>
        <News of="answer" count={waiting} onShow={showAll} />
        {rows.length > 0 && (
          <ul class="settled-list">
            {rows.map((one) => (
              <AnswerRow key={keyOf(one)} one={one} />
            ))}
          </ul>
        )}
      </div>
      {(!isComplete || error !== null) && (
        <button type="button" class="more" disabled={isReading} onClick={error === null ? more : again}>
          {isReading ? "Reading …" : error === null ? "Older ones" : "Try again"}
        </button>
      )}
      {isComplete && rows.length === 0 && (isFiltered ? <NoneFits /> : <NoneYet />)}
    </>
  );
}

/** Rows that come at the top would move what somebody reads further down. */
const isScrolled = (list: Element | null): boolean => (list?.closest(".column")?.scrollTop ?? 0) > 0;

interface FiltersProps {
  readonly people: readonly string[];
  readonly params: URLSearchParams;
}

function Filters({ people, params }: FiltersProps) {
  const own = session.value?.principal;
  const names = agents.value?.map(({ name }) => name) ?? [];
  return (
    <>
      <Choice name="what" title="What" values={WHAT.map(([value, title]) => [value, title])} />
      <Choice name="agent" title="Agent" values={options("All agents", names, params.get("agent"))} />
      <Choice
        name="by"
        title="Who answered"
        values={options("By everybody", own ? [own, ...people] : people, params.get("by"))}
      />
    </>
  );
}

/** All, then each name once. */
function options(all: string, names: readonly string[], chosen: string | null): [string, string][] {
  const distinct = [...new Set(chosen === null ? names : [...names, chosen])].sort();
  return [["", all], ...distinct.map((name): [string, string] => [name, nameOf(name)])];
}

interface ChoiceProps {
  readonly name: string;
  readonly title: string;
  readonly values: readonly (readonly [value: string, title: string])[];
}

const Choice = ({ name, title, values }: ChoiceProps) => (
  <select
    aria-label={title}
    value={route.value.params.get(name) ?? ""}
    onChange={({ currentTarget: { value } }) => go(hrefWith({ [name]: value || undefined }))}
  >
    {values.map(([value, text]) => (
      <option key={value} value={value}>
        {text}
      </option>
    ))}
  </select>
);

const NoneFits = () => (
  <p class="dim">
    No answer fits. <a href={href("answered")}>Show all</a>
  </p>
);

const NoneYet = () => (
  <Empty title="Nothing answered yet">
    Every question that was answered is listed here, with who answered it, how, and what they changed; and
    every question that expired because nobody answered.
  </Empty>
);
