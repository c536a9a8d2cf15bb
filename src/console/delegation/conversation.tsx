import { useSignal } from "@preact/signals";
import type { VNode } from "preact";
import { useMemo, useRef } from "preact/hooks";
import { isFollowUp, type Message } from "../../schema/a2a.ts";
import type { Change } from "../../schema/changes.ts";
import type { Delegation, DelegationError } from "../../schema/delegation.ts";
import type { DelegationEvent } from "../../schema/event.ts";
import { ChangeList } from "../edit/change-list.tsx";
import { optionText } from "../needs/proposal.ts";
import { session } from "../session/session.ts";
import { Age } from "../ui/age.tsx";
import { Linked } from "../ui/linked.tsx";
import { Parts } from "../ui/parts.tsx";
import { Problem } from "../ui/problem.tsx";
import { Proposed } from "../ui/proposed.tsx";
import { Said } from "../ui/said.tsx";
import { sendByCtrlEnter } from "../ui/submit-keys.ts";
import { useAction } from "../ui/use-action.ts";
import { count, nameOf } from "../ui/words.ts";
import { Output } from "./output.tsx";
import { Progress } from "./progress.tsx";
import {
  type Asked,
  editOf,
  examine,
  noTalkEvents,
  proposalOf,
  reportsBetween,
  type TalkEvents,
} from "./talk-events.ts";

/** How many messages are drawn at first, and how many more with each click. */
const STEP = 50;

interface Props {
  readonly delegation: Delegation;
  /** Null: not read yet. */
  readonly events: readonly DelegationEvent[] | null;
}

/** The task, the messages and reports since then, and how it ended. Of many messages, the latest. */
export function Conversation({ delegation, events }: Props) {
  const { current: talk } = useRef(noTalkEvents());
  if (events !== null) examine(talk, events);
  const [task, ...entries] = entriesOf(delegation, talk);
  // The first that is drawn stays so when a message arrives: nothing leaves while somebody reads it.
  const first = useSignal(Math.max(0, entries.length - STEP));
  const earlier = Math.min(first.value, entries.length);
  const reports = reportsBetween(
    talk.reports,
    entries.map(({ at }) => at),
  );
  const progressBefore = (index: number) => {
    const group = reports[index] ?? [];
    const [{ seq } = {}] = group;
    return seq === undefined ? [] : [<Progress key={`reports from ${seq}`} reports={group} />];
  };
  return (
    <ol class="conversation">
      {task?.block}
      {earlier > 0 && (
        <li class="earlier" key="earlier">
          <button
            type="button"
            class="quiet"
            onClick={() => {
              first.value = Math.max(0, earlier - STEP);
            }}
          >
            Show earlier ({count(earlier, "message")})
          </button>
        </li>
      )}
      {entries
        .slice(earlier)
        .flatMap(({ block }, index) => [...progressBefore(earlier + index), block])
        .concat(progressBefore(entries.length))}
    </ol>
  );
}

interface Entry {
  /** Null: unknown. */
  readonly at: string | null;
  readonly block: VNode;
}

function entriesOf(delegation: Delegation, talk: TalkEvents): readonly Entry[] {
  const { message, delegator, target, history, reply, error, created_at, finished_at, interrupt } =
    delegation;
  const open = new Set(interrupt?.requests.map((request) => request.message.messageId));
  const entries: Entry[] = [];
  const add = (key: string, { at, ...block }: BlockProps) => {
    entries.push({ at, block: <Block key={key} {...block} at={at} /> });
  };
  add("task", { author: nameOf(delegator), what: "delegated", at: created_at, parts: message.parts });
  for (const [index, one] of history.entries()) {
    const { messageId, role, parts } = one;
    // The open question is shown below the conversation, with the form for its answer.
    if (open.has(messageId)) continue;
    const of = role === "ROLE_AGENT" ? talk.asked.get(messageId) : undefined;
    const head = blockOf(one, delegation);
    const approval = role === "ROLE_USER" && {
      proposal: proposalOf(one, talk),
      edit: () => editOf(one, talk),
    };
    add(`${messageId} ${index}`, { ...head, at: head.at ?? of?.at ?? null, parts, asked: of, ...approval });
  }
  if (interrupt) add("asks", { author: target, what: "asks", at: interrupt.raised_at, parts: [] });
  if (reply && hasContent(reply))
    add("reply", { author: target, what: "replied", at: finished_at, parts: reply.parts });
  if (error) entries.push({ at: finished_at, block: <Failure key="error" error={error} at={finished_at} /> });
  return entries;
}

interface FailureProps {
  readonly error: DelegationError;
  readonly at: string | null;
}

function Failure({ error: { code, message, recovery }, at }: FailureProps) {
  return (
    <li class="said-block failure">
      <p class="author">
        <b>{code}</b> {at !== null && <Age at={at} ago />}
      </p>
      <p class="text">
        <Said>
          <Linked text={message} />
        </Said>
      </p>
      {/* It may only point at the message above. */}
      {!recovery.includes("error.message") && <p class="dim">{recovery}</p>}
    </li>
  );
}

/** A failed attempt often has a reply without words. */
const hasContent = ({ parts }: Message): boolean => parts.some(({ text }) => text !== "");

interface Head {
  /** Null if the message does not name it. */
  readonly author: string | null;
  readonly what: string;
  /** Null: unknown. */
  readonly at: string | null;
}

interface BlockProps extends Head, Pick<Message, "parts"> {
  /** For a question that is no longer open: what it proposed and offered. */
  readonly asked?: Asked | undefined;
  /** For an approval: what it changed in the arguments. */
  readonly edit?: () => readonly Change[] | null;
  /** The arguments that it approved; they come with the events. */
  readonly proposal?: unknown;
}

function Block({ author, what, at, parts, asked, edit, proposal }: BlockProps) {
  // A message never changes, so it is drawn again only when an event completes its head or its question.
  return useMemo(() => {
    const changes = edit?.() ?? null;
    return (
      <li class="said-block">
        <p class="author">
          {author !== null && <b title={author}>{author}</b>} {what}
          {changes && ` with ${count(changes.length, "change")}`} {at !== null && <Age at={at} ago />}
        </p>
        {changes ? <Edited parts={parts} changes={changes} /> : <Output parts={parts} />}
        {asked?.action && <Proposed name={asked.action.name} value={asked.action.arguments} />}
        {asked && asked.options.length > 0 && (
          <ul class="offered" aria-label="The options">
            {asked.options.map((option, index) => (
              <li key={index}>
                <Said>{optionText(option)}</Said>
              </li>
            ))}
          </ul>
        )}
      </li>
    );
  }, [author, what, at, asked, proposal]);
}

/** An approval with its own arguments: what it changed, and on request all of them. */
function Edited({
  parts,
  changes,
}: {
  readonly parts: Message["parts"];
  readonly changes: readonly Change[];
}) {
  const isData = (part: Message["parts"][number]) => "data" in part;
  return (
    <>
      <Output parts={parts.filter((part) => !isData(part))} />
      <ChangeList changes={changes} />
      <details class="edited">
        <summary>All arguments, as approved</summary>
        <Parts parts={parts.filter(isData)} />
      </details>
    </>
  );
}

const DECISIONS: Readonly<Record<string, string>> = { approve: "approved", deny: "denied" };

function blockOf(message: Message, { target }: Delegation): Head {
  const { by, at, auto, decision, redacted } = message.metadata ?? {};
  const when = typeof at === "string" && !Number.isNaN(Date.parse(at)) ? at : null;
  if (message.role === "ROLE_AGENT") return { author: target, what: "asked", at: when };
  const author = typeof by === "string" ? nameOf(by) : null;
  if (isFollowUp(message)) return { author, what: "added", at: when };
  const what = `${DECISIONS[String(decision)] ?? "answered"}${auto === true ? " in advance" : ""}`;
  return { author, what: redacted === true ? `${what} with a secret` : what, at: when };
}

/** A message to the agent while it works. */
export function FollowUp({ id, onSent }: { readonly id: string; readonly onSent: () => void }) {
  const text = useSignal("");
  const { isRunning, error, run } = useAction();
  const submit = (event: Event) => {
    event.preventDefault();
    void run(async () => {
      await session.value?.connection.delegator.message(id, text.value);
      text.value = "";
      onSent();
    });
  };
  return (
    <form class="follow-up" onSubmit={submit}>
      <textarea
        rows={2}
        aria-label="A follow-up for the agent"
        placeholder="Say more to the agent"
        required
        value={text.value}
        onInput={(event) => {
          text.value = event.currentTarget.value;
        }}
        onKeyDown={sendByCtrlEnter}
      />
      <button type="submit" title="Ctrl+Enter" disabled={isRunning || text.value.trim() === ""}>
        Send
      </button>
      <Problem error={error} />
    </form>
  );
}
