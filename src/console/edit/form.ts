import type { Path } from "../../schema/changes.ts";
import { isCtrlEnter } from "../ui/submit-keys.ts";
import type { Field } from "./fields.ts";

/** What the parts of a form share. */
export interface Form {
  /** Changes what is at the path; undefined removes it. */
  readonly set: (path: Path, next: (now: unknown) => unknown) => void;
  /** It answers a question: what is left empty is left out. Else it edits what somebody proposed. */
  readonly isAnswer: boolean;
  /** Texts are hidden while they are typed. */
  readonly isSecret: boolean;
}

export interface FieldProps {
  readonly field: Field;
  readonly form: Form;
}

/** An answer is given in the words of the question; an edit changes a member by its name, as it was proposed. */
export const labelOf = ({ title, name }: Field, { isAnswer }: Form): string => (isAnswer ? title : name);

/** The first field whose text stands for no value. */
export const firstBroken = (form: Element | null): HTMLElement | null =>
  form?.querySelector<HTMLElement>("[aria-invalid=true]") ?? null;

/** Acts by Ctrl+Enter in a field; a button has its own. */
export const onCtrlEnter =
  (act: () => void) =>
  (event: KeyboardEvent): void => {
    const { target } = event;
    if (!isCtrlEnter(event) || !(target instanceof Element) || target.localName === "button") return;
    event.preventDefault();
    act();
  };
