import { isFollowUp, type Message } from "../../schema/a2a.ts";
import type { Delegation } from "../../schema/delegation.ts";
import { Age } from "../ui/age.tsx";
import { Said } from "../ui/said.tsx";
import { nameOf } from "../ui/words.ts";
import { Output } from "./output.tsx";

/** The task, everything said since, and how it ended. */
export function Conversation({ delegation }: { readonly delegation: Delegation }) {
  const { message, delegator, target, history, reply, error, created_at, finished_at, interrupt } =
    delegation;
  const asked = new Set(interrupt?.requests.map((request) => request.message.messageId));
  return (
    <ol class="conversation">
      <Block author={nameOf(delegator)} what="delegated" at={created_at} parts={message.parts} />
      {history
        // The open question stands beneath, with its answers.
        .filter(({ messageId }) => !asked.has(messageId))
        .map((one, index) => (
          <Block key={`${one.messageId} ${index}`} {...blockOf(one, delegation)} parts={one.parts} />
        ))}
      {interrupt && <Block author={target} what="asks" at={interrupt.raised_at} parts={[]} />}
      {reply && hasContent(reply) && (
        <Block author={target} what="replied" at={finished_at} parts={reply.parts} />
      )}
      {error && (
        <li class="said-block failure">
          <p class="author">
            <b>{error.code}</b> {finished_at && <Age at={finished_at} ago />}
          </p>
          <p class="text">
            <Said>{error.message}</Said>
          </p>
          {/* It may only point at the message above. */}
          {!error.recovery.includes("error.message") && <p class="dim">{error.recovery}</p>}
        </li>
      )}
    </ol>
  );
}

/** A failed attempt often has a reply without words. */
const hasContent = ({ parts }: Message): boolean => parts.some(({ text }) => text !== "");

interface Head {
  /** Null: unknown, of a follow-up that an older version stored. */
  readonly author: string | null;
  readonly what: string;
  readonly at: string | null;
}

function Block({ author, what, at, parts }: Head & Pick<Message, "parts">) {
  return (
    <li class="said-block">
      <p class="author">
        {author !== null && <b title={author}>{author}</b>} {what} {at !== null && <Age at={at} ago />}
      </p>
      <Output parts={parts} />
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
