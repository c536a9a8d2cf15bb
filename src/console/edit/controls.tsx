/** The controls of single values. Each is inside its label, or has the label as its name. */
import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { optionText } from "../needs/proposal.ts";
import { Said } from "../ui/said.tsx";
import { readNumber } from "./exact-number.ts";
import type { FieldProps } from "./form.ts";
import { fromField, inField } from "./line-ends.ts";

interface ControlProps extends FieldProps {
  /** If no label is around it. */
  readonly name?: string | undefined;
}

/** Longer texts, and those with several lines, have a field of several lines. */
const LINE = 80;
const MAX_ROWS = 60;

const hasLines = (text: string): boolean => text.length > LINE || /[\r\n]/.test(text);

export function TextControl({ field, form, name }: ControlProps) {
  const { path, value, isRequired, isOptional, format } = field;
  const text = typeof value === "string" ? value : "";
  /** As it was when the field was opened: while somebody types, the field stays the same one. */
  const { current: first } = useRef({ text, isMissing: value === undefined, hasLines: hasLines(text) });
  const change = (typed: string) => {
    const isLeftOut = typed === "" && isOptional && (form.isAnswer || first.isMissing);
    form.set(path, () => (isLeftOut ? undefined : fromField(typed, first.text)));
  };
  const shared = {
    "aria-label": name,
    required: form.isAnswer && isRequired,
    value: inField(text),
    spellcheck: form.isAnswer,
    onInput: ({ currentTarget }: { readonly currentTarget: { readonly value: string } }) =>
      change(currentTarget.value),
  };
  const isSecret = form.isSecret || field.isSecret;
  // A field of one line would lose line breaks.
  if (!first.hasLines)
    return <input {...shared} {...(isSecret ? SECRET : typeFor(format, text))} autocomplete="off" />;
  return (
    <textarea
      {...shared}
      class={isSecret ? "edit-lines secret-text" : "edit-lines"}
      rows={Math.min(MAX_ROWS, Math.max(2, inField(text).split("\n").length))}
    />
  );
}

const SECRET = { type: "password" } as const;
const TEXT = { type: "text" } as const;
const DATE = { type: "date" } as const;
const FORMATS = { email: { type: "email" }, uri: { type: "url" }, date: DATE } as const;
const isFormat = (format: string): format is keyof typeof FORMATS => Object.hasOwn(FORMATS, format);

const IS_DATE = /^\d{4}-\d\d-\d\d$/;

/** A field for dates shows nothing of another text. */
function typeFor(format: string, text: string) {
  const type = isFormat(format) ? FORMATS[format] : TEXT;
  return type === DATE && text !== "" && !IS_DATE.test(text) ? TEXT : type;
}

export function NumberControl({ field, form, name }: ControlProps) {
  const { path, value, isRequired, isOptional } = field;
  const { current: isFirstMissing } = useRef(value === undefined);
  const canBeEmpty = isOptional && (form.isAnswer || isFirstMissing || value === undefined);
  /** What was typed, and why it is no number, as long as it stands for this value. */
  const typed = useSignal({ text: shownNumber(value), value, why: "" });
  const { text, why } = Object.is(typed.value.value, value)
    ? typed.value
    : { text: shownNumber(value), why: "" };
  const change = (next: string) => {
    const read = next === "" && canBeEmpty ? undefined : readNumber(next, field);
    if (typeof read === "object") typed.value = { text: next, value, why: read.why };
    else {
      typed.value = { text: next, value: read, why: "" };
      form.set(path, () => read);
    }
  };
  return (
    <>
      <input
        type="text"
        inputMode={field.isInteger ? "numeric" : "decimal"}
        autocomplete="off"
        aria-label={name}
        aria-invalid={why !== ""}
        required={form.isAnswer && isRequired}
        value={text}
        onInput={({ currentTarget }) => change(currentTarget.value)}
      />
      {why !== "" && (
        <small class="problem" role="alert">
          {why}
        </small>
      )}
    </>
  );
}

const shownNumber = (value: unknown): string => (typeof value === "number" ? String(value) : "");

export function YesControl({ field: { path, value }, form, name }: ControlProps) {
  return (
    <input
      type="checkbox"
      aria-label={name}
      checked={value === true}
      onChange={({ currentTarget: { checked } }) => form.set(path, () => checked)}
    />
  );
}

export function ChoiceControl({ field, form, name }: ControlProps) {
  const { path, value, choices, isRequired } = field;
  const isMissing = value === undefined;
  const canBeMissing = isMissing || field.isOptional;
  return (
    <select
      aria-label={name}
      required={form.isAnswer && isRequired}
      value={isMissing ? "" : String(choices.indexOf(value))}
      onChange={({ currentTarget }) => {
        const chosen = currentTarget.value === "" ? undefined : choices[Number(currentTarget.value)];
        form.set(path, () => chosen);
      }}
    >
      {canBeMissing && <option value="">{isRequired ? "choose…" : "–"}</option>}
      {choices.map((choice, index) => (
        <option key={index} value={index}>
          {optionText(choice)}
        </option>
      ))}
    </select>
  );
}

/** Boxes: which values of an enum are in the list. Those of the first list keep its order. */
export function ChoicesControl({ field, form }: FieldProps) {
  const { path, value, choices, isOptional } = field;
  const { current: first } = useRef(value);
  const chosen = listOf(value);
  const choose = (choice: unknown, isChosen: boolean) =>
    form.set(path, (now) => {
      const next = new Set(isChosen ? [...listOf(now), choice] : listOf(now).filter((one) => one !== choice));
      if (next.size === 0 && isOptional && (form.isAnswer || first === undefined)) return undefined;
      return [...new Set([...listOf(first), ...choices])].filter((one) => next.has(one));
    });
  return choices.map((choice, index) => (
    <label key={index} class="check">
      <span>
        <Said>{optionText(choice)}</Said>
      </span>
      <input
        type="checkbox"
        checked={chosen.includes(choice)}
        onChange={({ currentTarget: { checked } }) => choose(choice, checked)}
      />
    </label>
  ));
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
