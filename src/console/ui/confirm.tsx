import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { Problem } from "./problem.tsx";
import { useAction } from "./use-action.ts";

interface Props {
  /** On the button. */
  readonly verb: string;
  /** What it is done to: for a screen reader, where buttons look alike. */
  readonly object?: string;
  /** On the button in the question, with its object: read alone, "Cancel" could mean the question itself. */
  readonly confirm?: string;
  readonly question: string;
  /** What the verb means here. */
  readonly help?: string;
  /** The consequences of the action, or fields. */
  readonly children?: ComponentChildren;
  readonly danger?: boolean;
  /** Rarely wanted where it stands. */
  readonly quiet?: boolean;
  readonly disabled?: boolean;
  readonly onOpen?: () => void;
  readonly onConfirm: () => Promise<unknown>;
}

/** A button that asks before it acts. */
export function Confirm({
  verb,
  confirm = verb,
  question,
  help,
  children,
  onOpen,
  onConfirm,
  ...look
}: Props) {
  const { object, danger, quiet, disabled } = look;
  const dialog = useRef<HTMLDialogElement>(null);
  const { isRunning, error, run, again } = useAction();
  const close = () => dialog.current?.close();
  const submit = (event: Event) => {
    event.preventDefault();
    void run(async () => {
      await onConfirm();
      close();
    });
  };
  return (
    <>
      <button
        type="button"
        class={`${danger ? "danger" : ""} ${quiet ? "quiet" : ""}`}
        title={help}
        disabled={disabled}
        aria-label={object && `${verb} ${object}`}
        onClick={() => {
          onOpen?.();
          dialog.current?.showModal();
        }}
      >
        {verb}
      </button>
      <dialog ref={dialog} aria-label={question}>
        <form onSubmit={submit}>
          <h2>{question}</h2>
          {children}
          <Problem error={error} again={again} />
          <div class="buttons">
            <button type="submit" class={danger ? "danger primary" : "primary"} disabled={isRunning}>
              {confirm}
            </button>
            <button type="button" onClick={close}>
              Keep as it is
            </button>
          </div>
        </form>
      </dialog>
    </>
  );
}
