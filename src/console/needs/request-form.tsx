import { useSignal } from "@preact/signals";
import type { Interrupt } from "../../schema/delegation.ts";
import type { AnswerBody } from "../../schema/interrupt.ts";
import { lazyFrom } from "../app/lazy-from.tsx";
import { Json } from "../ui/json.tsx";
import { Parts } from "../ui/parts.tsx";
import { Said } from "../ui/said.tsx";
import { optionText, readAction } from "./proposal.ts";

const SchemaForm = lazyFrom(
  () => import("./schema-form.tsx"),
  ({ SchemaForm: loaded }) => loaded,
);
const JsonField = lazyFrom(
  () => import("../ui/json-field.tsx"),
  ({ JsonField: loaded }) => loaded,
);

export interface Given {
  readonly answer: AnswerBody;
  /** "Approved", for the reader. */
  readonly done: string;
}

interface Props {
  readonly request: Interrupt["requests"][number];
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
  const decide = (decision: Decision) =>
    onGive({ answer: { decision, ...(decision === "approve" && data) }, done: DECISIONS[decision].done });
  // Without choices of its own, a question is approved or denied, unless a schema asks for data.
  const choices = options.length > 0 ? options : action || schema === undefined ? ["approve", "deny"] : [];
  return (
    <div class="request">
      <Parts parts={message.parts} />
      {action && (
        <div class="proposal">
          <h3>
            <Said>{action.name}</Said>
          </h3>
          {isEditing.value ? (
            <JsonField
              label={`Arguments of ${action.name}`}
              value={action.arguments}
              onValue={(value) => {
                edited.value = value;
                isBroken.value = value === undefined;
              }}
            />
          ) : (
            <Json value={action.arguments} />
          )}
        </div>
      )}
      {choices.length > 0 && (
        <div class="buttons">
          {choices.map((option) =>
            option === "approve" || option === "deny" ? (
              <DecisionButton
                key={option}
                decision={option}
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
      {schema !== undefined && !action && (
        <SchemaForm
          schema={schema}
          onSubmit={(value) => onGive({ answer: { data: value }, done: "Answered" })}
        />
      )}
      {options.length === 0 && schema === undefined && !action && <TextAnswer kind={kind} onGive={onGive} />}
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
} as const;
type Decision = keyof typeof DECISIONS;

interface DecisionProps {
  readonly decision: Decision;
  readonly isDisabled: boolean;
  readonly onDecide: (decision: Decision) => void;
}

function DecisionButton({ decision, isDisabled, onDecide }: DecisionProps) {
  const { verb, key } = DECISIONS[decision];
  return (
    <button
      type="button"
      name={decision}
      class={decision === "approve" ? "approve" : ""}
      disabled={isDisabled}
      onClick={() => onDecide(decision)}
    >
      {verb} <kbd>{key}</kbd>
    </button>
  );
}

function OptionButton({ option, onGive }: { readonly option: unknown; readonly onGive: Props["onGive"] }) {
  const text = optionText(option);
  const answer = typeof option === "string" ? { text: option } : { data: option };
  return (
    <button type="button" onClick={() => onGive({ answer, done: `Answered “${text}”` })}>
      <Said>{text}</Said>
    </button>
  );
}

const SECRET = { type: "password" } as const;
const PLAIN = { type: "text" } as const;

function TextAnswer({ kind, onGive }: Pick<Props, "kind" | "onGive">) {
  const text = useSignal("");
  const submit = (event: Event) => {
    event.preventDefault();
    if (text.value.trim() !== "") onGive({ answer: { text: text.value }, done: "Answered" });
  };
  const label = kind === "auth" ? "A secret for the agent alone" : "Or answer in words";
  return (
    <form class="text-answer" onSubmit={submit}>
      <input
        {...(kind === "auth" ? SECRET : PLAIN)}
        autocomplete="off"
        aria-label={label}
        placeholder={label}
        value={text.value}
        onInput={(event) => {
          text.value = event.currentTarget.value;
        }}
      />
      <button type="submit" disabled={text.value.trim() === ""}>
        Answer
      </button>
    </form>
  );
}
