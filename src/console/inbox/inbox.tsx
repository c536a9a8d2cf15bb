/** The questions that wait for the reader: a list, and beside it the whole of one. */
import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { adopt } from "../app/adopt.ts";
import { useKey } from "../app/keys.ts";
import { go, hrefWith, route } from "../app/route.ts";
import { hasQuestions } from "../data/delegations.ts";
import type { ListedDelegation } from "../data/listed.ts";
import { isForOthers } from "../needs/mine.ts";
import { Needs, NothingNeeded } from "../needs/needs.tsx";
import { QuestionCard } from "../needs/question-card.tsx";
import { askedNow, outcomeOf } from "../needs/rows.ts";
import { NeedsTitle } from "../needs/title.tsx";
import { News, useSteady } from "../ui/steady.tsx";
import { useFirst } from "../ui/use-first.tsx";
import { nameOf } from "../ui/words.ts";
import { About } from "./about.tsx";
import { type Group, groupsOf } from "./equal.ts";
import { EqualQuestions } from "./equal-questions.tsx";
import { styles } from "./inbox.css";
import { QuestionRow } from "./question-row.tsx";
import { RiskMark } from "./risk.tsx";
import { useSelection } from "./use-selection.ts";

adopt(styles);

/** In pixels: with less, the questions stand below each other. */
const WIDE = 680;
const SHOWN = 200;

export function Inbox() {
  const place = useRef<HTMLDivElement>(null);
  const isWide = useSignal<boolean | null>(null);
  useLayoutEffect(() => {
    const { current } = place;
    if (!current) return;
    const measure = () => {
      isWide.value = current.offsetWidth >= WIDE;
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(current);
    return () => observer.disconnect();
  }, []);
  return (
    <div class="inbox-place" ref={place}>
      {isWide.value === null ? null : isWide.value ? <ListAndDetail /> : <Needs />}
    </div>
  );
}

function ListAndDetail() {
  const list = useRef<HTMLDivElement>(null);
  const { params } = route.value;
  const [agent, whom] = [params.get("agent"), params.get("for")];
  const { questions, isOpen, rows: all } = askedNow();
  const fits = ({ target, delegator }: ListedDelegation) =>
    (agent === null || target === agent) && (whom === null || delegator === whom);
  const asked = all.filter(({ listed }) => fits(listed));
  const { rows, waiting, showAll } = useSteady(list, groupsOf(asked, isForOthers), ({ key }) => key);
  const { shown, more } = useFirst(rows, SHOWN, "question");
  const { chosen, select } = useSelection(rows, hasQuestions.value);
  const step = (by: 1 | -1) => {
    const buttons = [...(list.current?.querySelectorAll<HTMLElement>(".ask-row") ?? [])];
    const at = buttons.findIndex((one) => one.matches("[aria-current=true]"));
    buttons[Math.min(Math.max(at + by, 0), buttons.length - 1)]?.focus();
  };
  useKey("j", () => step(1));
  useKey("k", () => step(-1));
  /** A row stands for the question that is shown, or for the first that is open. */
  const rowOf = ({ members }: Group) => {
    const current = members.find(({ id }) => id === chosen?.asked.id);
    const asked = current ?? members.find(({ id }) => isOpen(id)) ?? members[0];
    return (
      <QuestionRow
        asked={asked}
        equals={members.length}
        isCurrent={current !== undefined}
        outcome={outcomeOf(asked, isOpen)?.text}
        onSelect={() => current === undefined && select(asked.id)}
      />
    );
  };
  return (
    <section class="needs inbox" aria-label="Questions">
      <div class="inbox-head">
        <NeedsTitle />
        <Choice name="agent" title="Agent" all="All agents" values={questions.map(({ target }) => target)} />
        <Choice
          name="for"
          title="For whom"
          all="For everybody"
          values={questions.map(({ delegator }) => delegator)}
        />
      </div>
      {!chosen && !hasQuestions.value && <p class="loading">Reading what waits …</p>}
      {rows.length === 0 && hasQuestions.value && (questions.length > 0 ? <NoneFits /> : <NothingNeeded />)}
      {chosen && (
        <div class="inbox-body">
          <div class="inbox-list steady" ref={list}>
            <News of="question" count={waiting} onShow={showAll} />
            <ul>
              {shown.map((group) => (
                <li key={group.key}>{rowOf(group)}</li>
              ))}
            </ul>
            {more}
          </div>
          <div class="inbox-detail" key={chosen.asked.id}>
            <QuestionCard
              listed={chosen.asked.listed}
              note={outcomeOf(chosen.asked, isOpen)}
              mark={<RiskMark listed={chosen.asked.listed} />}
            />
            <EqualQuestions group={chosen.group} isOpen={isOpen} />
            <About listed={chosen.asked.listed} />
          </div>
        </div>
      )}
    </section>
  );
}

const NoneFits = () => (
  <p class="dim">
    No question fits. <a href={hrefWith({ agent: undefined, for: undefined })}>Show all</a>
  </p>
);

interface ChoiceProps {
  readonly name: "agent" | "for";
  readonly title: string;
  readonly all: string;
  readonly values: readonly string[];
}

/** A filter by one property of the questions; none if all have the same. */
function Choice({ name, title, all, values }: ChoiceProps) {
  const chosen = route.value.params.get(name) ?? "";
  const names = [...new Set(chosen === "" ? values : [...values, chosen])].sort();
  if (names.length < 2 && chosen === "") return null;
  return (
    <select
      aria-label={title}
      value={chosen}
      onChange={({ currentTarget: { value } }) => go(hrefWith({ [name]: value || undefined }))}
    >
      <option value="">{all}</option>
      {names.map((one) => (
        <option key={one} value={one}>
          {name === "for" ? nameOf(one) : one}
        </option>
      ))}
    </select>
  );
}
