import type { Signal } from "@preact/signals";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { isObject } from "../../schema/json-schema/keywords.ts";
import { EditForm } from "../edit/edit-form.tsx";
import { fieldsOf } from "../edit/fields.ts";
import { firstBroken, onCtrlEnter } from "../edit/form.ts";
import { startOf } from "../edit/shape.ts";
import { JsonField } from "../ui/json-field.tsx";

interface Props {
  readonly schema: unknown;
  readonly data: Signal<unknown>;
  /** Texts are hidden while they are typed. */
  readonly isSecret: boolean;
  readonly onSubmit: (data: unknown) => void;
  /** The form has other values than before. */
  readonly onChange: () => void;
}

/** What the form has before anybody typed. */
export function answerStart(schema: unknown): unknown {
  const start = startOf(schema);
  return isObject(start) ? start : {};
}

/** A form for the data that a question asks for. For a schema that no form can express, a JSON editor. */
export function SchemaForm({ schema, data, isSecret, onSubmit, onChange }: Props) {
  const hasForm = useMemo(() => fieldsOf(data.peek(), schema).length > 0, [schema]);
  const form = useRef<HTMLFormElement>(null);
  useLayoutEffect(onChange, [data.value]);
  const submit = (event: Event) => {
    event.preventDefault();
    const broken = firstBroken(form.current);
    if (broken) broken.focus();
    else onSubmit(data.value);
  };
  return (
    // A browser offers again what it keeps of a form.
    <form
      class="fields"
      autocomplete="off"
      ref={form}
      onSubmit={submit}
      onKeyDown={onCtrlEnter(() => form.current?.querySelector<HTMLElement>("[type=submit]")?.click())}
    >
      {hasForm ? (
        <EditForm value={data} schema={schema} isAnswer isSecret={isSecret} />
      ) : (
        <JsonField
          label="The answer, as JSON"
          value={data.value}
          onValue={(value) => {
            if (value !== undefined) data.value = value;
          }}
        />
      )}
      <button type="submit" class="primary">
        Answer
      </button>
    </form>
  );
}
