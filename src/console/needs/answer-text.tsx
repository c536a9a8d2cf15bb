import type { Signal } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { Interrupt } from "../../schema/delegation.ts";
import { sendByCtrlEnter } from "../ui/submit-keys.ts";
import type { Given } from "./given.ts";

interface Props {
  /** Kept by the form, because a decision sends it as its comment. */
  readonly text: Signal<string>;
}

interface AnswerProps extends Props {
  readonly kind: Interrupt["kind"];
  readonly onGive: (given: Given) => void;
}

/** An answer in words, or a secret. */
export function TextAnswer({ text, kind, onGive }: AnswerProps) {
  const submit = (event: Event) => {
    event.preventDefault();
    if (text.value.trim() !== "") onGive({ answer: { text: text.value }, done: "Answered" });
  };
  const label = kind === "auth" ? "Secret (agent only)" : "Answer in words";
  const input = (event: { readonly currentTarget: { readonly value: string } }) => {
    text.value = event.currentTarget.value;
  };
  const field = { autocomplete: "off", "aria-label": label, placeholder: label, value: text.value } as const;
  return (
    <form class="text-answer" onSubmit={submit}>
      {kind === "auth" ? (
        <input type="password" {...field} onInput={input} />
      ) : (
        <textarea rows={2} {...field} onInput={input} onKeyDown={sendByCtrlEnter} />
      )}
      <button type="submit" class="primary" title="Ctrl+Enter" disabled={text.value.trim() === ""}>
        Answer
      </button>
    </form>
  );
}

/** The reason or the condition of a decision. */
export function CommentField({ text }: Props) {
  // One that was typed before the page was loaded is seen before it is sent.
  const { current: isTyped } = useRef(text.peek() !== "");
  return (
    <details class="comment" open={isTyped}>
      <summary>Comment…</summary>
      <textarea
        rows={2}
        aria-label="Comment for the agent"
        value={text.value}
        onInput={(event) => {
          text.value = event.currentTarget.value;
        }}
      />
    </details>
  );
}
