import { useSignal } from "@preact/signals";
import type { VNode } from "preact";
import { useRef } from "preact/hooks";
import { isFollowUp, type Message } from "../../schema/a2a.ts";
import type { Delegation } from "../../schema/delegation.ts";
import type { DelegationEvent } from "../../schema/event.ts";
import { count, nameOf } from "../ui/words.ts";
import { hasContent } from "./head-text.ts";
import { Progress } from "./progress.tsx";
import { Block, type BlockProps, blockOf, Ending } from "./talk-block.tsx";
import {
  answersIn,
  brokerIn,
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
  for (const { index, one, answer, isGiven } of besideQuestions(history, talk)) {
    const { messageId, role, parts } = one;
    // The open question is shown below the conversation, with the form for its answer.
    if (open.has(messageId)) continue;
    const of = role === "ROLE_AGENT" ? talk.asked.get(messageId) : undefined;
    const given = blockOf(one, delegation);
    const head = of?.by ? { ...given, author: of.by } : given;
    const approval = role === "ROLE_USER" && {
      proposal: proposalOf(one, talk),
      edit: () => editOf(one, talk),
      known: isFollowUp(one) ? NO_SCHEMA : schemaOf(one, talk),
    };
    const at = head.at ?? of?.at ?? null;
    add(`${messageId} ${index}`, { ...head, at, parts, asked: of, answer, isGiven, ...approval });
  }
  const asker = interrupt && (brokerIn(interrupt.id) ?? target);
  if (interrupt) add("asks", { author: asker, what: "asks", at: interrupt.raised_at, parts: [] });
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

interface Said {
  /** In the history. */
  readonly index: number;
  readonly one: Message;
  /** Of a question. */
  readonly answer?: Message | undefined;
  /** It is the answer to the question before it. */
  readonly isGiven: boolean;
}

/** Each answer after its question, also where several were asked at once. Approvals of several people keep their places. */
function besideQuestions(history: readonly Message[], talk: TalkEvents): readonly Said[] {
  const answers = answersIn(history, talk);
  const indexes = new Map(history.map((one, index) => [one, index]));
  const placed = new Set([...answers.values()].filter(({ metadata }) => metadata?.vote !== true));
  return history.flatMap((one, index) => {
    if (placed.has(one)) return [];
    const answer = one.role === "ROLE_AGENT" ? answers.get(one.messageId) : undefined;
    if (answer === undefined || !placed.has(answer)) return [{ index, one, answer, isGiven: false }];
    const given = { index: indexes.get(answer) ?? index, one: answer, isGiven: true };
    return [{ index, one, answer, isGiven: false }, given];
  });
}

/** Of a message that answers no question. */
const NO_SCHEMA = { schema: undefined };
