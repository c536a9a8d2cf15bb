import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { changesOf } from "../../schema/changes.ts";
import type { Interrupt } from "../../schema/delegation.ts";
import { withoutSecrets } from "../../schema/secrets.ts";
import { votedOtherwise } from "../../schema/voted-answers.ts";
import { ActionEditor } from "../edit/action-editor.tsx";
import { ChangeList } from "../edit/change-list.tsx";
import { firstBroken } from "../edit/form.ts";
import { isSecretAt, mayHoldSecrets } from "../edit/shape.ts";
import { Fold } from "../ui/fold.tsx";
import { Output } from "../ui/output.tsx";
import { Proposed } from "../ui/proposed.tsx";
import { Said } from "../ui/said.tsx";
import { visible } from "../ui/visible.ts";
import { count } from "../ui/words.ts";
import { CommentField, TextAnswer } from "./answer-text.tsx";
import { votersText } from "./ballot.ts";
import { useDraft } from "./drafts.ts";
import type { Given } from "./given.ts";
import { isApproved } from "./mine.ts";
import { choicesOf, type Decision, isDecision, optionText, type Request, readAction } from "./proposal.ts";
import { SAME_MINUTES } from "./same-again.ts";
import { answerStart, SchemaForm } from "./schema-form.tsx";
import { VotedOtherwise } from "./votes-line.tsx";

interface Props {
  /** The question. */
  readonly interrupt: Interrupt;
  /** The task of the work that asks: a screen reader reads it with the buttons. */
  readonly task: string;
  readonly request: Request;
  /** Whether an approval of the reader counts. */
  readonly isCounted: boolean;
  /** Set if several requests are answered together. */
  readonly given?: Given | undefined;
  readonly onGive: (given: Given) => void;
  /** Approves it, and the same again for a while; null or absent: that is not offered. */
  readonly onApproveSame?: ((given: Given) => void) | null | undefined;
  /** The form shows another answer than the one that was given. */
  readonly onChange?: () => void;
}

/** One request: what is asked or proposed, and the ways to answer it that fit. */
export function RequestForm(props: Props) {
  const { interrupt, task, request, isCounted, given, onGive, onApproveSame, onChange } = props;
  const { id: question, kind, votes } = interrupt;
  const { message, options = [], schema } = request;
  const action = readAction(request);
  const place = useRef<HTMLDivElement>(null);
  const start = useMemo(() => (action ? action.arguments : answerStart(schema)), [request]);
  const isSecret = kind === "auth" || mayHoldSecrets(schema);
  const { text, isEditing, value: edited } = useDraft(question, request.request_id, start, isSecret);
  const voted = votedOtherwise(interrupt)?.[request.request_id];
  const voters = votersText(votes?.given ?? []);
  /** The arguments that others approved, or else that the agent proposes. */
  const isOther =
    action !== null && voted?.data !== undefined && changesOf(action.arguments, voted.data).length > 0;
  const base = isOther ? voted?.data : action?.arguments;
  const changes = action ? changesOf(action.arguments, isEditing.value ? edited.value : base) : [];
  const isSame = !isEditing.value || changesOf(base, edited.value).length === 0;
  const isOwn = isApproved(interrupt);
  // A text for a question about access is a secret, and never a comment.
  const comment = kind === "auth" ? "" : text.value.trim();
  // Before another press can send what was given. Not when the answer is given, which changes none of these.
  useLayoutEffect(() => {
    if (given) onChange?.();
  }, [edited.value, isEditing.value, text.value]);
  const decide = (decision: Decision) => {
    const isEdit = decision === "approve" && changes.length > 0;
    const data = isSame ? base : edited.value;
    const broken = decision === "approve" && isEditing.value ? firstBroken(place.current) : null;
    if (broken) {
      broken.focus();
      return;
    }
    onGive({
      answer: { decision, ...(comment && { text: comment }), ...(isEdit && { data }) },
      done: `${DECISIONS[decision].done}${decision === "approve" ? how : ""}`,
    });
  };
  const how =
    isOther && isSame ? ` as changed by ${voters}` : changes.length > 0 ? withChanges(changes.length) : "";
  const all = choicesOf(request, kind);
  const isOnlyDeny = !isCounted && all.includes("approve");
  // Whoever has approved can deny it still, or approve other arguments.
  const choices = all.filter(
    (option) => option === "deny" || (!isOnlyDeny && (!isOwn || (option === "approve" && !isSame))),
  );
  const approvesSame = choices.includes("approve") && !isEditing.value && onApproveSame;
  const object = action ? `${action.name}, ${task}` : task;
  const isOpen = options.length === 0 && schema === undefined && !action;
  const takesComment = !isOpen && kind !== "auth" && choices.length > 0 && choices.every(isDecision);
  return (
    <div class="request" ref={place}>
      <Fold>
        <Output parts={message.parts} />
      </Fold>
      {action && !isEditing.value && (
        <Fold>
          <Proposed name={action.name} value={isOther ? withoutSecrets(base, schema) : base} />
        </Fold>
      )}
      {action && isEditing.value && (
        <ActionEditor
          name={action.name}
          schema={schema}
          value={edited}
          onApprove={() => place.current?.querySelector<HTMLElement>("button[name=approve]")?.click()}
        />
      )}
      {isOther && isSame && (
        <p>
          Changed by <b>{voters}</b>, from what was proposed:
        </p>
      )}
      {changes.length > 0 && <ChangeList changes={changes} isSecret={(path) => isSecretAt(schema, path)} />}
      {!isSame && voters !== "" && <p class="late">It voids the approval so far: {voters}.</p>}
      {!isOther && <VotedOtherwise voted={voted} voters={voters} schema={schema} />}
      {isOpen && <TextAnswer text={text} kind={kind} onGive={onGive} />}
      {choices.length > 0 && (
        <div class="buttons">
          {choices.map((option) =>
            isDecision(option) ? (
              <DecisionButton
                key={option}
                decision={option}
                object={object}
                isPrimary={option === "approve" && !isOpen}
                hasComment={comment !== ""}
                how={option === "approve" ? how : ""}
                given={given}
                onDecide={decide}
              />
            ) : (
              <OptionButton key={JSON.stringify(option)} option={option} given={given} onGive={onGive} />
            ),
          )}
          {isOther && isSame && !isOwn && !isOnlyDeny && (
            <button
              type="button"
              aria-label={`Approve as proposed, which voids the approval of ${voters}: ${object}`}
              onClick={() =>
                onGive({
                  answer: { decision: "approve", ...(comment && { text: comment }) },
                  done: "Approved as proposed",
                })
              }
            >
              Approve as proposed, void {voters}
            </button>
          )}
          {action?.isEditable && (isEditing.value || !isOnlyDeny) && (
            <button
              type="button"
              name={isEditing.value ? undefined : "edit"}
              aria-label={`${isEditing.value ? DISCARD : "Edit"}: ${object}`}
              aria-keyshortcuts={isEditing.value ? undefined : "e"}
              onClick={() => {
                isEditing.value = !isEditing.value;
                edited.value = base;
              }}
            >
              {isEditing.value ? DISCARD : "Edit"}
            </button>
          )}
        </div>
      )}
      {takesComment && (
        // Beside each other, so that the card is as high as without the button, and no other one moves.
        <div>
          {approvesSame && (
            <button
              type="button"
              style={{ float: "right", margin: "-2px 0 -10px" }}
              aria-label={`${YES_SAME} the same: ${object}`}
              title="Approves this, and makes a rule that approves this action with these arguments from now on. Equal questions that are open already wait. Agents has the list of rules."
              onClick={() =>
                approvesSame({
                  answer: { decision: "approve", ...(comment && { text: comment }) },
                  done: DECISIONS.approve.done,
                })
              }
            >
              {YES_SAME}
            </button>
          )}
          <CommentField text={text} />
        </div>
      )}
      {schema !== undefined && !action && !isOnlyDeny && (
        <SchemaForm
          schema={schema}
          data={edited}
          isSecret={kind === "auth"}
          onChange={() => given && onChange?.()}
          onSubmit={(value) => onGive({ answer: { data: value }, done: "Answered" })}
        />
      )}
      {given && (
        <p class="answered" role="status">
          {given.done}, not sent yet.
        </p>
      )}
    </div>
  );
}

const DECISIONS = {
  approve: { verb: "Approve", done: "Approved", key: "a" },
  deny: { verb: "Deny", done: "Denied", key: "d" },
} as const satisfies Record<Decision, unknown>;

const DISCARD = "Discard changes";
const YES_SAME = `Yes, for ${SAME_MINUTES} min`;

interface DecisionProps {
  readonly decision: Decision;
  /** What is decided. */
  readonly object: string;
  readonly isPrimary: boolean;
  readonly hasComment: boolean;
  /** ` with 2 changes`, ` as changed by ann`. */
  readonly how: string;
  readonly given: Props["given"];
  readonly onDecide: (decision: Decision) => void;
}

const withChanges = (changes: number): string => ` with ${count(changes, "change")}`;

function DecisionButton(props: DecisionProps) {
  const { decision, object, isPrimary, hasComment, how, given, onDecide } = props;
  const answer = given?.answer;
  const { verb, key } = DECISIONS[decision];
  const comment = hasComment ? (how.startsWith(" with") ? " and comment" : " with comment") : "";
  const label = `${verb}${how}${comment}`;
  return (
    <button
      type="button"
      name={decision}
      class={isPrimary ? "approve" : ""}
      aria-label={`${label}: ${object}`}
      aria-keyshortcuts={key}
      aria-pressed={given && typeof answer === "object" && answer.decision === decision}
      onClick={() => onDecide(decision)}
    >
      {label} <kbd data-key={key} />
    </button>
  );
}

interface OptionProps extends Pick<Props, "given" | "onGive"> {
  readonly option: unknown;
}

function OptionButton({ option, given, onGive }: OptionProps) {
  const text = visible(optionText(option));
  const answer = typeof option === "string" ? { text: option } : { data: option };
  return (
    <button
      type="button"
      class="option"
      aria-pressed={given && JSON.stringify(given.answer) === JSON.stringify(answer)}
      onClick={() => onGive({ answer, done: `Answered “${text}”` })}
    >
      <Said>{text}</Said>
    </button>
  );
}
