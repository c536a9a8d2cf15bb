import { type ComponentChildren, Fragment } from "preact";
import { useMemo } from "preact/hooks";
import { isFollowUp, type Message } from "../../schema/a2a.ts";
import type { Delegation, DelegationError } from "../../schema/delegation.ts";
import type { DelegationEvent } from "../../schema/event.ts";
import { optionText } from "../needs/proposal.ts";
import { Age } from "../ui/age.tsx";
import { Proposed } from "../ui/proposed.tsx";
import { Said } from "../ui/said.tsx";
import { nameOf } from "../ui/words.ts";
import { type Asked, askedOf } from "./asked.ts";
import { Output } from "./output.tsx";
import { Progress, reportsBetween } from "./progress.tsx";
import { useEvents } from "./use-events.ts";

/** The task, everything said and reported since, and how it ended. */
export function Conversation({ delegation }: { readonly delegation: Delegation }) {
  const { value } = useEvents(delegation);
  const events = value ?? NONE;
  const asked = useMemo(() => askedOf(events), [events]);
  const entries = entriesOf(delegation, asked);
  const reports = reportsBetween(
    events,
    entries.map(({ at }) => at),
  );
  return (
    <ol class="conversation">
      {entries.map(({ key, block }, index) => (
        <Fragment key={key}>
          <Progress reports={reports[index] ?? NONE} />
          {block}
        </Fragment>
      ))}
      <Progress reports={reports.at(-1) ?? NONE} />
    </ol>
  );
}

const NONE: readonly DelegationEvent[] = [];

interface Entry {
  readonly key: string;
  /** Null: unknown. */
  readonly at: string | null;
  readonly block: ComponentChildren;
}

function entriesOf(delegation: Delegation, asked: ReadonlyMap<string, Asked>): readonly Entry[] {
  const { message, delegator, target, history, reply, error, created_at, finished_at, interrupt } =
    delegation;
  const open = new Set(interrupt?.requests.map((request) => request.message.messageId));
  const entries: Entry[] = [];
  const add = (key: string, { at, ...block }: BlockProps) => {
    entries.push({ key, at, block: <Block {...block} at={at} /> });
  };
  add("task", { author: nameOf(delegator), what: "delegated", at: created_at, parts: message.parts });
  for (const [index, one] of history.entries()) {
    const { messageId, role, parts } = one;
    // The open question stands beneath, with its answers.
    if (open.has(messageId)) continue;
    const of = role === "ROLE_AGENT" ? asked.get(messageId) : undefined;
    const head = blockOf(one, delegation);
    add(`${messageId} ${index}`, { ...head, at: head.at ?? of?.at ?? null, parts, asked: of });
  }
  if (interrupt) add("asks", { author: target, what: "asks", at: interrupt.raised_at, parts: [] });
  if (reply && hasContent(reply))
    add("reply", { author: target, what: "replied", at: finished_at, parts: reply.parts });
  if (error)
    entries.push({ key: "error", at: finished_at, block: <Failure error={error} at={finished_at} /> });
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
        <Said>{message}</Said>
      </p>
      {/* It may only point at the message above. */}
      {!recovery.includes("error.message") && <p class="dim">{recovery}</p>}
    </li>
  );
}

/** A failed attempt often has a reply without words. */
const hasContent = ({ parts }: Message): boolean => parts.some(({ text }) => text !== "");

interface Head {
  /** Null: unknown, for a follow-up that an older version stored. */
  readonly author: string | null;
  readonly what: string;
  /** Null: unknown. */
  readonly at: string | null;
}

interface BlockProps extends Head, Pick<Message, "parts"> {
  /** For a question that is no longer open: the choices of its answer. */
  readonly asked?: Asked | undefined;
}

function Block({ author, what, at, parts, asked }: BlockProps) {
  return (
    <li class="said-block">
      <p class="author">
        {author !== null && <b title={author}>{author}</b>} {what} {at !== null && <Age at={at} ago />}
      </p>
      <Output parts={parts} />
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
