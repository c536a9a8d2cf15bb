import { type Signal, useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { focusByKeyboard } from "../app/keys.ts";
import { JsonField } from "../ui/json-field.tsx";
import { Said } from "../ui/said.tsx";
import { EditForm } from "./edit-form.tsx";
import { fieldsOf } from "./fields.ts";
import { firstBroken, onCtrlEnter } from "./form.ts";

interface Props {
  /** Of the action. */
  readonly name: string;
  readonly schema: unknown;
  /** The arguments, as they are edited. */
  readonly value: Signal<unknown>;
  /** Ctrl+Enter in a field. */
  readonly onApprove: () => void;
}

/** The arguments of a proposed action, to be changed in a form or as JSON. */
export function ActionEditor({ name, schema, value, onApprove }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const hasForm = fieldsOf(value.value, schema).length > 0;
  const isJson = useSignal(!hasForm);
  // To its first field.
  useLayoutEffect(() => focusByKeyboard(place.current?.querySelector("input, textarea, select")), []);
  const switchTo = () => {
    // A text that is no valid value exists only in its field, so switching would lose it.
    const broken = firstBroken(place.current);
    if (broken) broken.focus();
    else isJson.value = !isJson.value;
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: a key of its fields
    <div class="proposal edit" ref={place} onKeyDown={onCtrlEnter(onApprove)}>
      <div class="edit-head">
        <p class="proposal-name">
          <Said>{name}</Said>
        </p>
        {(hasForm || !isJson.value) && (
          <button type="button" class="quiet" onClick={switchTo}>
            {isJson.value ? "As form" : "As JSON"}
          </button>
        )}
      </div>
      {isJson.value ? (
        <JsonField
          label={`Arguments of ${name}`}
          value={value.value}
          onValue={(next) => {
            if (next !== undefined) value.value = next;
          }}
        />
      ) : (
        <div class="fields">
          <EditForm value={value} schema={schema} isAnswer={false} />
        </div>
      )}
    </div>
  );
}
