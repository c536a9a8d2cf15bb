import { useSignal } from "@preact/signals";
import type { VNode } from "preact";
import { useMemo, useRef } from "preact/hooks";
import { isFollowUp, type Message, type Part } from "../../schema/a2a.ts";
import type { Change } from "../../schema/changes.ts";
import type { Delegation } from "../../schema/delegation.ts";
import type { DelegationEvent } from "../../schema/event.ts";
import { ChangeList } from "../edit/change-list.tsx";
import { optionText } from "../needs/proposal.ts";
import { session } from "../session/session.ts";
import { Age } from "../ui/age.tsx";
import { Parts } from "../ui/parts.tsx";
import { Problem } from "../ui/problem.tsx";
import { Proposed } from "../ui/proposed.tsx";
import { Said } from "../ui/said.tsx";
import { StateMark } from "../ui/state-mark.tsx";
import { sendByCtrlEnter } from "../ui/submit-keys.ts";
import { useAction } from "../ui/use-action.ts";
import { count, nameOf, PHASES, STATE_WORDS } from "../ui/words.ts";
import { hasContent } from "./head-text.ts";
import { Output } from "./output.tsx";
import { Progress } from "./progress.tsx";
import { isSecretIn, withoutSecrets } from "./secrets.ts";
import {
  type Asked,
  editOf,
  examine,
  noTalkEvents,
  proposalOf,
  reportsBetween,
  schemaOf,
  type TalkEvents,
} from "./talk-events.ts";

/** How many messages are drawn at first, and how many more with each click. */
const STEP = 50;

interface Props {
  readonly delegation: Delegation;
  /** Null: not read yet. */
  readonly events: readonly DelegationEvent[] | null;
}

/** The task, the messages and reports since then, and that it ended. Of many messages, the latest. */
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
  const { message, delegator, target, history, reply, state, created_at, finished_at, interrupt } =
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
      known: isFollowUp(one) ? NO_SCHEMA : schemaOf(one, talk),
    };
    add(`${messageId} ${index}`, { ...head, at: head.at ?? of?.at ?? null, parts, asked: of, ...approval });
  }
  if (interrupt) add("asks", { author: target, what: "asks", at: interrupt.raised_at, parts: [] });
  // The reply of completed work is in its head, and so is why other work ended.
  if (reply && hasContent(reply) && state !== "completed")
    add("reply", { author: target, what: "replied", at: finished_at, parts: reply.parts });
  if (finished_at !== null)
    entries.push({
      at: finished_at,
      block: <Ending key="ending" delegation={delegation} at={finished_at} />,
    });
  return entries;
}

/** Of a message that answers no question. */
const NO_SCHEMA = { schema: undefined };

function Ending({
  delegation: { state, target },
  at,
}: {
  readonly delegation: Delegation;
  readonly at: string;
}) {
  return (
    <li class="said-block">
      <p class="author">
        <StateMark phase={PHASES[state]} />{" "}
        {state === "completed" ? (
          <>
            <b>{target}</b> replied
          </>
        ) : (
          STATE_WORDS[state]
        )}{" "}
        <Age at={at} ago />, as shown above
      </p>
    </li>
  );
}

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
  /** For an answer: the schema of its question. Undefined: not known, so its data may be a secret. */
  readonly known?: Known | undefined;
}

interface Known {
  readonly schema: unknown;
}

function Block({ author, what, at, parts, asked, edit, proposal, known }: BlockProps) {
  // A message never changes, so it is drawn again only when an event completes its head or its question.
  return useMemo(() => {
    const changes = edit?.() ?? null;
    return (
      <li class="said-block">
        <p class="author">
          {author !== null && <b title={author}>{author}</b>} {what}
          {changes && ` with ${count(changes.length, "change")}`} {at !== null && <Age at={at} ago />}
        </p>
        {changes ? (
          <Edited parts={parts} changes={changes} schema={known?.schema} />
        ) : edit ? (
          <Answered parts={parts} known={known} />
        ) : (
          <Output parts={parts} />
        )}
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
  }, [author, what, at, asked, proposal, known !== undefined]);
}

const isData = (part: Part): boolean => "data" in part;

/** The parts with the secrets in their data replaced. */
const shownParts = (parts: readonly Part[], schema: unknown): readonly Part[] =>
  parts.map((part) => (isData(part) ? { ...part, data: withoutSecrets(part.data, schema) } : part));

/** An answer without its secrets. What cannot be checked for secrets is shown on request. */
function Answered({ parts, known }: { readonly parts: readonly Part[]; readonly known: Known | undefined }) {
  if (known || !parts.some(isData)) return <Output parts={shownParts(parts, known?.schema)} />;
  return (
    <>
      <Output parts={parts.filter((part) => !isData(part))} />
      <details>
        <summary>Data of the answer</summary>
        <Parts parts={parts.filter(isData)} />
      </details>
    </>
  );
}

/** An approval with its own arguments: what it changed, and on request all of them. */
function Edited({
  parts,
  changes,
  schema,
}: {
  readonly parts: readonly Part[];
  readonly changes: readonly Change[];
  readonly schema: unknown;
}) {
  const isSecret = (path: Change["path"]) => {
    const { from, to } = changes.find((one) => one.path === path) ?? {};
    return isSecretIn(path, [from, to], schema);
  };
  return (
    <>
      <Output parts={parts.filter((part) => !isData(part))} />
      <ChangeList changes={changes} isSecret={isSecret} />
      <details class="edited">
        <summary>All arguments, as approved</summary>
        <Parts parts={shownParts(parts.filter(isData), schema)} />
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
