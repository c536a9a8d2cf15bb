/** Ctrl+K: goes to what is typed, or does it. A combobox with a list, by keyboard alone. */
import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { adopt } from "../app/adopt.ts";
import { paletteIsOpen } from "../app/keys.ts";
import { agents, readAgents } from "../data/agents.ts";
import { mine } from "../needs/mine.ts";
import { session } from "../session/session.ts";
import { openDialog } from "../ui/open-dialog.ts";
import { Problem } from "../ui/problem.tsx";
import { Said } from "../ui/said.tsx";
import { useAction } from "../ui/use-action.ts";
import { count } from "../ui/words.ts";
import {
  actionCommands,
  agentCommands,
  beginsWith,
  type Command,
  delegationCommands,
  fitting,
  type Group,
  questionCommands,
  viewCommands,
} from "./commands.ts";
import { styles } from "./palette.css";
import { PauseQuestion } from "./pause-question.tsx";
import { MOST, useDelegationsOf } from "./use-delegations-of.ts";

adopt(styles);

/** In characters, as the broker takes for a search. */
const MAX_TEXT = 100;

interface Mark {
  readonly id: string;
  /** The text for which it was marked. */
  readonly typed: string;
}

export function Palette() {
  const dialog = useRef<HTMLDialogElement>(null);
  const text = useSignal("");
  /** The command that Enter does. It stays while others come or go, until another text is typed. */
  const marked = useSignal<Mark | null>(null);
  const pausing = useSignal<string | null>(null);
  const { error, run, again } = useAction();
  useLayoutEffect(() => openDialog(dialog.current), []);
  const wanted = text.value.trim();
  const { delegations, isReading, error: notRead } = useDelegationsOf(wanted);
  const resume = (agent: string) =>
    void run(async () => {
      await session.value?.connection.admin.resumeAgent(agent);
      await readAgents();
      close();
    });
  const close = () => dialog.current?.close();
  const asking = { onPause: (agent: string) => (pausing.value = agent), onResume: resume };
  const groups: readonly Group[] = [
    { title: "Views", commands: fitting(viewCommands(), wanted, MOST) },
    { title: "Questions for you", commands: fitting(questionCommands(mine.value), wanted, MOST) },
    { title: "Actions", commands: fitting(actionCommands(), wanted, MOST) },
    {
      title: "Agents",
      commands: fitting(agentCommands(agents.value ?? [], asking), wanted, MOST),
    },
    { title: "Delegations", commands: delegationCommands(delegations.slice(0, MOST)) },
  ].filter(({ commands }) => commands.length > 0);
  const all = groups.flatMap(({ commands }) => commands);
  const typed = text.value;
  const mark = (id: string | undefined) => {
    marked.value = id === undefined ? null : { id, typed };
  };
  const chosen = all.findIndex(({ id }) => id === marked.value?.id && typed === marked.value.typed);
  const at = chosen === -1 ? bestOf(all, wanted) : chosen;
  const current = all[at];
  // What is marked when it is drawn stays so: another best one could come between a look and Enter.
  useEffect(() => {
    // The next letter may come before this runs, so the mark says for which text it is.
    if (marked.peek()?.typed !== typed) mark(current?.id);
  }, [typed, current?.id]);
  const does = (command: Command | undefined) => {
    if (!command) return;
    command.act();
    // What asks further stays.
    if (pausing.peek() === null && !command.id.startsWith("resume ")) close();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: MOST, PageUp: -MOST }[event.key];
    if (event.isComposing) return;
    if (step !== undefined) {
      event.preventDefault();
      const end = Math.abs(step) === 1 ? (at + step + all.length) % Math.max(1, all.length) : at + step;
      mark(all[Math.min(Math.max(end, 0), all.length - 1)]?.id);
    } else if (event.key === "Enter") {
      event.preventDefault();
      // Held down, it does nothing more.
      if (!event.repeat) does(current);
    }
  };
  const found = isReading ? "Searching …" : all.length === 0 ? "Nothing fits." : count(all.length, "result");
  return (
    <dialog
      ref={dialog}
      class="palette"
      aria-label="Go to"
      onClose={() => {
        paletteIsOpen.value = false;
        restoreCaret();
      }}
      onPointerDown={({ target, currentTarget }) => {
        // Beside the dialog.
        if (target === currentTarget) close();
      }}
    >
      {pausing.value === null ? (
        <>
          <input
            type="text"
            role="combobox"
            aria-label="Go to a view, an agent, a question or a delegation, or do something"
            aria-expanded={all.length > 0}
            aria-controls="palette-list"
            aria-activedescendant={current && optionId(current)}
            aria-autocomplete="list"
            autocomplete="off"
            spellcheck={false}
            autofocus
            maxLength={MAX_TEXT}
            placeholder="Go to, or do …"
            value={text.value}
            onInput={({ currentTarget }) => {
              text.value = currentTarget.value;
              marked.value = null;
            }}
            onKeyDown={onKeyDown}
          />
          <div id="palette-list" role="listbox" aria-label="Results">
            {groups.map(({ title, commands }) => (
              // biome-ignore lint/a11y/useSemanticElements: a listbox has no element of its own for groups
              <div key={title} role="group" aria-label={title}>
                <p aria-hidden="true">{title}</p>
                {commands.map((command) => (
                  <Option
                    key={command.id}
                    command={command}
                    isMarked={command === current}
                    onMark={() => {
                      mark(command.id);
                    }}
                    onDo={() => does(command)}
                  />
                ))}
              </div>
            ))}
          </div>
          <p class="palette-state" role="status">
            {found}
          </p>
          <Problem error={error ?? notRead} {...(error === null ? {} : { again })} />
        </>
      ) : (
        <PauseQuestion agent={pausing.value} onDone={close} />
      )}
    </dialog>
  );
}

/** A field that gets the focus back from a dialog has no caret in Chromium, and takes no keys. */
function restoreCaret(): void {
  const { activeElement } = document;
  if (!(activeElement instanceof HTMLElement)) return;
  activeElement.blur();
  activeElement.focus({ preventScroll: true });
}

/** With fewer characters, nobody means an action that is rarely wanted. */
const RARE_FROM = 3;

/** What the reader means first: what begins with the text. Delegations come later, and take no mark away. */
function bestOf(all: readonly Command[], text: string): number {
  const own = (command: Command) => !command.id.startsWith("delegation ");
  const begins = (command: Command) => own(command) && beginsWith(command.title, text);
  const common = (command: Command) => command.isRare !== true;
  const wishes = [
    (command: Command) => begins(command) && common(command),
    (command: Command) => begins(command) && text.length >= RARE_FROM,
    (command: Command) => own(command) && common(command),
  ];
  for (const isWished of wishes) {
    const at = all.findIndex(isWished);
    if (at !== -1) return at;
  }
  return 0;
}

const optionId = ({ id }: Command): string => `palette ${id}`.replaceAll(/[^\w-]/g, "_");

interface OptionProps {
  readonly command: Command;
  readonly isMarked: boolean;
  readonly onMark: () => void;
  readonly onDo: () => void;
}

function Option({ command, isMarked, onMark, onDo }: OptionProps) {
  const option = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (isMarked) option.current?.scrollIntoView({ block: "nearest" });
  }, [isMarked]);
  return (
    // The focus stays in the field, which has the keys.
    // biome-ignore lint/a11y/useKeyWithClickEvents: as above
    <div
      ref={option}
      id={optionId(command)}
      role="option"
      aria-selected={isMarked}
      tabIndex={-1}
      onPointerMove={onMark}
      onMouseDown={(event) => event.preventDefault()}
      onClick={onDo}
    >
      <span>
        <Said>{command.title}</Said>
      </span>
      {command.note !== undefined && <small>{command.note}</small>}
    </div>
  );
}
