/** What the palette offers: views, questions, agents, delegations and actions. It never answers a question. */
import type { Agent } from "../../schema/agent.ts";
import type { Delegation } from "../../schema/delegation.ts";
import { helpIsOpen } from "../app/keys.ts";
import { go, href, hrefOf, type View } from "../app/route.ts";
import { THEME_WORDS, THEMES, theme } from "../app/theme.ts";
import type { ListedDelegation } from "../data/listed.ts";
import { isOperator, mayDelegate, seesAll } from "../session/rights.ts";
import { signOut } from "../session/sign-out.ts";
import { askerOf, STATE_WORDS, taskText } from "../ui/words.ts";

export interface Command {
  /** The same as long as it does the same. */
  readonly id: string;
  readonly title: string;
  /** More about it, in a few words. */
  readonly note?: string;
  /** It is offered only when it is looked for: nobody starts it by mistake. */
  readonly isRare?: boolean;
  readonly act: () => void;
}

export interface Group {
  readonly title: string;
  readonly commands: readonly Command[];
}

const VIEWS: readonly (readonly [View, string])[] = [
  ["needs", "Needs you"],
  ["answered", "Answered"],
  ["live", "Live"],
  ["find", "Find"],
  ["agents", "Agents"],
  ["charts", "Charts"],
];

const goTo = (to: string) => () => go(to);

export const viewCommands = (): readonly Command[] => [
  ...VIEWS.map(([view, title]) => ({ id: `view ${view}`, title, act: goTo(href(view)) })),
  { id: "view notifications", title: "Notifications", act: goTo(href("agents", { part: "notifications" })) },
  ...(isOperator.value
    ? [
        { id: "view tokens", title: "Tokens", act: goTo(href("agents", { part: "tokens" })) },
        {
          id: "view log",
          title: "Log",
          note: "who changed what",
          act: goTo(href("agents", { part: "log" })),
        },
      ]
    : []),
];

export const questionCommands = (questions: readonly ListedDelegation[]): readonly Command[] =>
  questions.map((listed) => ({
    id: `question ${listed.interrupt?.id}`,
    title: taskText(listed),
    note: `${askerOf(listed)} asks`,
    act: goTo(hrefOf(listed.id)),
  }));

interface Asking {
  /** Asks whether to pause the agent. */
  readonly onPause: (agent: string) => void;
  readonly onResume: (agent: string) => void;
}

export function agentCommands(agents: readonly Agent[], { onPause, onResume }: Asking): readonly Command[] {
  return agents.flatMap(({ name, paused }) => [
    { id: `agent ${name}`, title: name, note: "agent", act: goTo(href("agents", { name })) },
    ...(seesAll.value
      ? [
          {
            id: `charts ${name}`,
            title: `Charts of ${name}`,
            isRare: true,
            act: goTo(href("charts", { agent: name })),
          },
        ]
      : []),
    ...(mayDelegate.value
      ? [
          {
            id: `delegate ${name}`,
            title: `Delegate to ${name}`,
            isRare: true,
            act: goTo(href("delegate", { target: name })),
          },
        ]
      : []),
    ...(isOperator.value
      ? [
          paused
            ? { id: `resume ${name}`, title: `Resume ${name}`, isRare: true, act: () => onResume(name) }
            : { id: `pause ${name}`, title: `Pause ${name} …`, isRare: true, act: () => onPause(name) },
        ]
      : []),
  ]);
}

export const delegationCommands = (found: readonly (ListedDelegation | Delegation)[]): readonly Command[] =>
  found.map((delegation) => ({
    id: `delegation ${delegation.id}`,
    title: taskText(delegation),
    note: `${delegation.target}, ${STATE_WORDS[delegation.state]}`,
    act: goTo(hrefOf(delegation.id)),
  }));

export const actionCommands = (): readonly Command[] => [
  ...(mayDelegate.value ? [{ id: "delegate", title: "Delegate", act: goTo(href("delegate")) }] : []),
  ...THEMES.filter((one) => one !== theme.value).map((one) => ({
    id: `theme ${one}`,
    title: `Theme: ${THEME_WORDS[one].toLowerCase()}`,
    isRare: true,
    act: () => {
      theme.value = one;
    },
  })),
  {
    id: "keys",
    title: "Keyboard",
    note: "the keys of this page",
    isRare: true,
    act: () => {
      helpIsOpen.value = true;
    },
  },
  { id: "sign out", title: "Sign out", isRare: true, act: () => void signOut() },
];

/** Every word of the text is in the command. */
export function fits({ title, note = "" }: Command, text: string): boolean {
  const all = `${title} ${note}`.toLowerCase();
  return text
    .toLowerCase()
    .split(/\s+/)
    .every((word) => all.includes(word));
}

export const beginsWith = (title: string, text: string): boolean =>
  title.toLowerCase().startsWith(text.toLowerCase());

/** Titles that begin with the text come first. */
export function fitting(commands: readonly Command[], text: string, most: number): readonly Command[] {
  if (text === "") return commands.filter(({ isRare }) => isRare !== true).slice(0, most);
  const rank = ({ title }: Command) => (beginsWith(title, text) ? 0 : 1);
  return commands
    .filter((command) => fits(command, text))
    .sort((a, b) => rank(a) - rank(b))
    .slice(0, most);
}
