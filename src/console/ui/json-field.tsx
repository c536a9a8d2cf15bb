import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { INEXACT_NUMBER, inexactNumberPaths } from "../../schema/exact-numbers.ts";
import { jsonFault } from "./json-fault.ts";

interface Props {
  readonly label: string;
  readonly value: unknown;
  /** Undefined while the text is not JSON. */
  readonly onValue: (value: unknown) => void;
}

/** An editor for JSON. An error is named beneath, and its line is marked. */
export function JsonField({ label, value, onValue }: Props) {
  const text = useSignal(JSON.stringify(value, null, 2) ?? "");
  const scrolled = useSignal(0);
  /** The value that the text stands for. */
  const known = useRef(value);
  const fault = jsonFault(text.value);
  const inexact = fault === null ? inexactIn(text.value) : undefined;
  const change = (changed: string) => {
    text.value = changed;
    const isGood = jsonFault(changed) === null && inexactIn(changed) === undefined;
    const next: unknown = isGood ? JSON.parse(changed) : undefined;
    if (isGood) known.current = next;
    onValue(next);
  };
  // Another form of the same value changed it. A text that is no JSON stays; it is not sent either.
  useLayoutEffect(() => {
    if (known.current === value || fault !== null || inexact !== undefined) return;
    known.current = value;
    text.value = JSON.stringify(value, null, 2) ?? "";
  }, [value]);
  return (
    <label class="json-field">
      <span>{label}</span>
      <span class="json-lines">
        <textarea
          class="code"
          spellcheck={false}
          rows={Math.min(16, text.value.split("\n").length + 1)}
          aria-invalid={fault !== null || inexact !== undefined}
          value={text.value}
          onInput={(event) => change(event.currentTarget.value)}
          onScroll={({ currentTarget }) => {
            scrolled.value = currentTarget.scrollTop;
          }}
        />
        {fault && (
          <span class="json-line" style={{ "--line": fault.line - 1, "--scrolled": `${scrolled.value}px` }} />
        )}
      </span>
      {fault && (
        <small class="problem" role="alert">
          Line {fault.line}, column {fault.column}: {fault.why}.
        </small>
      )}
      {inexact !== undefined && (
        <small class="problem" role="alert">
          {inexact || "It"} {INEXACT_NUMBER}.
        </small>
      )}
    </label>
  );
}

/** The path of the first number that would lose digits. */
const inexactIn = (json: string): string | undefined => inexactNumberPaths(json, 1)[0];
