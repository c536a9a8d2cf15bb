import { isFollowUp, type Message } from "../../schema/a2a.ts";
import type { Delegation } from "../../schema/delegation.ts";
import { optionText } from "../needs/proposal.ts";
import { Age } from "../ui/age.tsx";
import { Proposed } from "../ui/proposed.tsx";
import { Said } from "../ui/said.tsx";
import { nameOf } from "../ui/words.ts";
import { Output } from "./output.tsx";
import { type Asked, useAsked } from "./use-asked.ts";

/** The task, everything said since, and how it ended. */
export function Conversation({ delegation }: { readonly delegation: Delegation }) {
  const { message, delegator, target, history, reply, error, created_at, finished_at, interrupt } =
    delegation;
  const open = new Set(interrupt?.requests.map((request) => request.message.messageId));
  const asked = useAsked(delegation);
  return (
    <ol class="conversation">
      <Block author={nameOf(delegator)} what="delegated" at={created_at} parts={message.parts} />
      {history
        // The open question stands beneath, with its answers.
        .filter(({ messageId }) => !open.has(messageId))
        .map((one, index) => (
          <Block
            key={`${one.messageId} ${index}`}
            {...blockOf(one, delegation)}
            parts={one.parts}
            asked={one.role === "ROLE_AGENT" ? asked.get(one.messageId) : undefined}
          />
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
  /** Null: unknown, for a follow-up that an older version stored. */
  readonly author: string | null;
  readonly what: string;
  readonly at: string | null;
}

interface BlockProps extends Head, Pick<Message, "parts"> {
  /** For a question that is no longer open: the choices of its answer. */
  readonly asked?: Asked | undefined;
}

function Block({ author, what, at, parts, asked }: BlockProps) {
  const when = at ?? asked?.at ?? null;
  return (
    <li class="said-block">
      <p class="author">
        {author !== null && <b title={author}>{author}</b>} {what} {when !== null && <Age at={when} ago />}
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
