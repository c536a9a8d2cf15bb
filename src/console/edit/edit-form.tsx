/** A form for the members of a JSON value. Nothing changes but what is typed into. */
import type { Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { adopt } from "../app/adopt.ts";
import { JsonField } from "../ui/json-field.tsx";
import { Said } from "../ui/said.tsx";
import { ChoiceControl, ChoicesControl, NumberControl, TextControl, YesControl } from "./controls.tsx";
import { styles } from "./edit.css";
import { blankOf, type Field, fieldsOf, type Kind } from "./fields.ts";
import { type FieldProps, type Form, labelOf } from "./form.ts";
import { ListItems } from "./list-items.tsx";
import { setAt } from "./set-at.ts";

adopt(styles);

interface Props extends Pick<Form, "isAnswer"> {
  readonly value: Signal<unknown>;
  readonly schema: unknown;
  readonly isSecret?: boolean;
}

export function EditForm({ value, schema, isAnswer, isSecret = false }: Props) {
  const form = useMemo<Form>(
    () => ({
      // Several fields may change before the form is drawn again.
      set: (path, next) => {
        value.value = setAt(value.peek(), path, next);
      },
      isAnswer,
      isSecret,
    }),
    [value, isAnswer, isSecret],
  );
  return <Fields fields={fieldsOf(value.value, schema)} form={form} />;
}

function Fields({ fields, form }: { readonly fields: readonly Field[]; readonly form: Form }) {
  return fields.map((field) => <FieldRow key={field.name} field={field} form={form} />);
}

function FieldRow({ field: found, form }: FieldProps) {
  const { field, isWide, row, focusNext } = useField(found);
  const { kind, path, name, title } = field;
  // An edit has the name as its label.
  const words = form.isAnswer || title === name ? "" : title;
  const description = [words, field.description].filter(Boolean).join(". ");
  const label = (
    <>
      <Said>{labelOf(field, form)}</Said>
      <Hints field={field} form={form} />
    </>
  );
  const about = description !== "" && (
    <small class="about">
      <Said>{description}</Said>
    </small>
  );
  const set = (value: unknown) => {
    focusNext();
    form.set(path, () => value);
  };
  const leaveOut = canBeLeftOut(field, form) && (
    <button
      type="button"
      class="quiet edit-remove"
      aria-label={`Leave out ${labelOf(field, form)}`}
      onClick={() => set(undefined)}
    >
      Leave out
    </button>
  );
  if (IS_PLAIN[kind]) {
    return (
      <div class={isWide ? "edit-field wide" : "edit-field"} ref={row}>
        {/* biome-ignore lint/a11y/noLabelWithoutControl: the control is in it */}
        <label class={kind === "yes" ? "check" : ""}>
          <span>{label}</span>
          <Control field={field} form={form} />
        </label>
        {about}
        {leaveOut}
      </div>
    );
  }
  const isMissing = kind === "none" || (field.value === undefined && kind !== "choices");
  return (
    <div class="edit-field wide" ref={row}>
      <fieldset class="edit-group">
        <legend>{label}</legend>
        {about}
        {isMissing ? (
          <p class="edit-none">
            {kind === "none" && <span class="dim">none</span>}
            <button
              type="button"
              aria-label={`Set ${labelOf(field, form)}`}
              onClick={() => set(blankOf(field))}
            >
              Set
            </button>
          </p>
        ) : (
          <Parts field={field} form={form} />
        )}
        {leaveOut}
      </fieldset>
    </div>
  );
}

/**
 * A field stays what it was when somebody began to type into it: JSON stays JSON, and a short text in its place. The focus
 * goes to what takes the place of a button.
 */
function useField(found: Field) {
  const isJson = useRef(false);
  isJson.current = found.value !== undefined && (isJson.current || found.kind === "json");
  const { current: isWide } = useRef(
    typeof found.value === "string" && (found.value.length > SHORT || found.value.includes("\n")),
  );
  const row = useRef<HTMLDivElement>(null);
  const wantsFocus = useRef(false);
  useLayoutEffect(() => {
    if (!wantsFocus.current) return;
    wantsFocus.current = false;
    row.current?.querySelector<HTMLElement>("input, textarea, select, button")?.focus();
  });
  const focusNext = () => {
    wantsFocus.current = true;
  };
  const field: Field = isJson.current ? { ...found, kind: "json" } : found;
  return { field, isWide, row, focusNext };
}

/** In characters: what fits beside another field. */
const SHORT = 40;

/** An optional member that is present. A choice has a line for it. */
const canBeLeftOut = ({ kind, value, isOptional }: Field, { isAnswer }: Form): boolean =>
  !isAnswer && isOptional && value !== undefined && kind !== "choice";

/** A label with one control. */
const IS_PLAIN: Readonly<Record<Kind, boolean>> = {
  text: true,
  number: true,
  yes: true,
  choice: true,
  choices: false,
  list: false,
  group: false,
  none: false,
  json: false,
};

function Hints({ field: { hints, kind, value, isOptional }, form: { isAnswer } }: FieldProps) {
  // A box that is not checked answers no.
  const isNo = isAnswer && kind === "yes";
  const all = [
    ...(isOptional && !isNo ? ["optional"] : []),
    ...hints,
    ...(value === undefined && isOptional && !isAnswer ? ["not set"] : []),
  ];
  if (all.length === 0) return null;
  return (
    <small>
      {" "}
      <Said>{all.join(" · ")}</Said>
    </small>
  );
}

/** The control of a value that has one. `name`: its name where no label is around it. */
function Control(props: FieldProps & { readonly name?: string }) {
  switch (props.field.kind) {
    case "number":
      return <NumberControl {...props} />;
    case "yes":
      return <YesControl {...props} />;
    case "choice":
      return <ChoiceControl {...props} />;
    default:
      return <TextControl {...props} />;
  }
}

/** The inside of a field with several controls. */
function Parts({ field, form }: FieldProps) {
  const { kind, path, value } = field;
  switch (kind) {
    case "choices":
      return <ChoicesControl field={field} form={form} />;
    case "group":
      return (
        <div class="fields">
          <Fields fields={field.fields} form={form} />
        </div>
      );
    case "list":
      return (
        <ListItems field={field} form={form}>
          {(item, name): ComponentChildren =>
            IS_PLAIN[item.kind] ? (
              <Control field={item} form={form} name={name} />
            ) : (
              <Parts field={item} form={form} />
            )
          }
        </ListItems>
      );
    default:
      return (
        <JsonField
          label={`${labelOf(field, form)}, as JSON`}
          value={value}
          onValue={(next) => next !== undefined && form.set(path, () => next)}
        />
      );
  }
}
