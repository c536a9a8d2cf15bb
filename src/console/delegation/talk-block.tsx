/** The messages of a conversation as blocks: who wrote it and when, what it says, and what it proposed or changed. */
import { useMemo } from "preact/hooks";
import { isFollowUp, type Message, type Part, textOf } from "../../schema/a2a.ts";
import type { Change } from "../../schema/changes.ts";
import type { Delegation } from "../../schema/delegation.ts";
import { isSecretIn, withoutSecrets } from "../../schema/secrets.ts";
import { sortedJson } from "../../schema/sorted-json.ts";
import { ChangeList } from "../edit/change-list.tsx";
import { optionText } from "../needs/proposal.ts";
import { Age } from "../ui/age.tsx";
import { Fold } from "../ui/fold.tsx";
import { Output } from "../ui/output.tsx";
import { Parts } from "../ui/parts.tsx";
import { Proposed } from "../ui/proposed.tsx";
import { Said } from "../ui/said.tsx";
import { StateMark } from "../ui/state-mark.tsx";
import { count, decided, nameOf, PHASES, STATE_WORDS } from "../ui/words.ts";
import type { Asked } from "./talk-events.ts";

/** Of a message, before it is unfolded. */
const MAX_LINES = 60;

interface Head {
  /** Null if the message does not name it. */
  readonly author: string | null;
  readonly what: string;
  /** Null: unknown. */
  readonly at: string | null;
}

export interface BlockProps extends Head, Pick<Message, "parts"> {
  /** For a question that is no longer open: what it proposed and offered. */
  readonly asked?: Asked | undefined;
  /** The answer to a question, which is the next block. */
  readonly answer?: Message | undefined;
  /** It answers the question of the block before. */
  readonly isGiven?: boolean;
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

export function Block(block: BlockProps) {
  const { author, what, at, parts, asked, answer, isGiven, edit, proposal, known } = block;
  // A message never changes, so it is drawn again only when an event completes its head or its question.
  return useMemo(() => {
    const changes = edit?.() ?? null;
    return (
      <li class={isGiven ? "said-block given" : "said-block"}>
        <p class="author">
          {author !== null && <b title={author}>{author}</b>} {what}
          {changes && ` with ${count(changes.length, "change")}`} {at !== null && <Age at={at} ago />}
          {answer && (
            <b class="answered-mark">
              <StateMark phase="completed" /> answered
            </b>
          )}
        </p>
        <Fold lines={MAX_LINES}>
          {changes ? (
            <Edited parts={parts} changes={changes} schema={known?.schema} />
          ) : edit ? (
            <Answered parts={parts} known={known} />
          ) : (
            <Output parts={parts} />
          )}
        </Fold>
        {asked?.action && <Proposed name={asked.action.name} value={asked.action.arguments} />}
        {asked && asked.options.length > 0 && (
          <ul class="offered" aria-label="The options">
            {asked.options.map((option, index) => (
              <li key={index}>
                {isChosen(option, answer) ? (
                  <b class="chosen">
                    <Said>{optionText(option)}</Said> <StateMark phase="completed" />
                  </b>
                ) : (
                  <Said>{optionText(option)}</Said>
                )}
              </li>
            ))}
          </ul>
        )}
      </li>
    );
  }, [author, what, at, asked, answer, isGiven, proposal, known !== undefined]);
}

/** An option that is no text is chosen by its data. */
function isChosen(option: unknown, answer: Message | undefined): boolean {
  if (answer === undefined) return false;
  if (typeof option === "string") return [textOf(answer), answer.metadata?.decision].includes(option);
  return answer.parts.some(({ data }) => data !== undefined && sortedJson(data) === sortedJson(option));
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

/** Who wrote the message, what kind of message it is, and when it came. */
export function blockOf(message: Message, { target }: Delegation): Head {
  const { by, at, auto, decision, redacted, vote } = message.metadata ?? {};
  const when = typeof at === "string" && !Number.isNaN(Date.parse(at)) ? at : null;
  if (message.role === "ROLE_AGENT") return { author: target, what: "asked", at: when };
  const author = typeof by === "string" ? nameOf(by) : null;
  if (isFollowUp(message)) return { author, what: "added", at: when };
  const own = vote === true ? ", as one of several" : "";
  const what = `${decided(decision)}${own}${auto === true ? " in advance" : ""}`;
  return { author, what: redacted === true ? `${what} with a secret` : what, at: when };
}

/** That it ended; its head says how. */
export function Ending({
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
