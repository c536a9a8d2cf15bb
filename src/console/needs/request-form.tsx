import { useSignal } from "@preact/signals";
import type { Interrupt } from "../../schema/delegation.ts";
import { Fold } from "../ui/fold.tsx";
import { JsonField } from "../ui/json-field.tsx";
import { Parts } from "../ui/parts.tsx";
import { Proposed } from "../ui/proposed.tsx";
import { Said } from "../ui/said.tsx";
import { CommentField, TextAnswer } from "./answer-text.tsx";
import type { Given } from "./given.ts";
import { choicesOf, type Decision, isDecision, optionText, type Request, readAction } from "./proposal.ts";
import { SchemaForm } from "./schema-form.tsx";

interface Props {
  readonly request: Request;
  readonly kind: Interrupt["kind"];
  /** Set if several requests are answered together. */
  readonly given?: Given | undefined;
  readonly onGive: (given: Given) => void;
}

/** One request: what is asked or proposed, and the ways to answer it that fit. */
export function RequestForm({ request, kind, given, onGive }: Props) {
  const { message, options = [], schema } = request;
  const action = readAction(request);
  const edited = useSignal<unknown>(undefined);
  const isEditing = useSignal(false);
  /** The edited arguments are not JSON. */
  const isBroken = useSignal(false);
  const data = isEditing.value && edited.value !== undefined ? { data: edited.value } : {};
  const text = useSignal("");
  // A text for a question about access is a secret, and never a comment.
  const comment = kind === "auth" ? "" : text.value.trim();
  const decide = (decision: Decision) =>
    onGive({
      answer: { decision, ...(comment && { text: comment }), ...(decision === "approve" && data) },
      done: DECISIONS[decision].done,
    });
  const choices = choicesOf(request, kind);
  const isOpen = options.length === 0 && schema === undefined && !action;
  const takesComment = !isOpen && kind !== "auth" && choices.length > 0 && choices.every(isDecision);
  return (
    <div class="request">
      <Fold>
        <Parts parts={message.parts} />
      </Fold>
      {action && !isEditing.value && (
        <Fold>
          <Proposed name={action.name} value={action.arguments} />
        </Fold>
      )}
      {action && isEditing.value && (
        <div class="proposal">
          <h3>
            <Said>{action.name}</Said>
          </h3>
          <JsonField
            label={`Arguments of ${action.name}`}
            value={action.arguments}
            onValue={(value) => {
              edited.value = value;
              isBroken.value = value === undefined;
            }}
          />
        </div>
      )}
      {isOpen && <TextAnswer text={text} kind={kind} onGive={onGive} />}
      {choices.length > 0 && (
        <div class="buttons">
          {choices.map((option) =>
            isDecision(option) ? (
              <DecisionButton
                key={option}
                decision={option}
                isPrimary={option === "approve" && !isOpen}
                hasComment={comment !== ""}
                isDisabled={option === "approve" && isEditing.value && isBroken.value}
                onDecide={decide}
              />
            ) : (
              <OptionButton key={JSON.stringify(option)} option={option} onGive={onGive} />
            ),
          )}
          {action?.isEditable && (
            <button
              type="button"
              onClick={() => {
                isEditing.value = !isEditing.value;
                edited.value = undefined;
                isBroken.value = false;
              }}
            >
              {isEditing.value ? "As proposed" : "Edit"}
            </button>
          )}
        </div>
      )}
      {takesComment && <CommentField text={text} />}
      {schema !== undefined && !action && (
        <SchemaForm
          schema={schema}
          isSecret={kind === "auth"}
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

interface DecisionProps {
  readonly decision: Decision;
  readonly isPrimary: boolean;
  readonly hasComment: boolean;
  readonly isDisabled: boolean;
  readonly onDecide: (decision: Decision) => void;
}

function DecisionButton({ decision, isPrimary, hasComment, isDisabled, onDecide }: DecisionProps) {
  const { verb, key } = DECISIONS[decision];
  return (
    <button
      type="button"
      name={decision}
      class={isPrimary ? "approve" : ""}
      disabled={isDisabled}
      onClick={() => onDecide(decision)}
    >
      {verb}
      {hasComment && " with comment"} <kbd>{key}</kbd>
    </button>
  );
}

function OptionButton({ option, onGive }: { readonly option: unknown; readonly onGive: Props["onGive"] }) {
  const text = optionText(option);
  const answer = typeof option === "string" ? { text: option } : { data: option };
  return (
    <button type="button" class="option" onClick={() => onGive({ answer, done: `Answered “${text}”` })}>
      <Said>{text}</Said>
    </button>
  );
}
