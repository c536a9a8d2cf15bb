import { useSignal } from "@preact/signals";

interface Props {
  readonly label: string;
  readonly value: unknown;
  /** Undefined while the text is not JSON. */
  readonly onValue: (value: unknown) => void;
}

/** An editor for JSON, with its error beneath. */
export function JsonField({ label, value, onValue }: Props) {
  const text = useSignal(JSON.stringify(value, null, 2) ?? "");
  const error = useSignal("");
  const change = (changed: string) => {
    text.value = changed;
    try {
      onValue(JSON.parse(changed));
      error.value = "";
    } catch (problem) {
      onValue(undefined);
      error.value = problem instanceof Error ? problem.message : "not JSON";
    }
  };
  return (
    <label class="json-field">
      <span>{label}</span>
      <textarea
        class="code"
        spellcheck={false}
        rows={Math.min(16, text.value.split("\n").length + 1)}
        aria-invalid={error.value !== ""}
        value={text.value}
        onInput={(event) => change(event.currentTarget.value)}
      />
      {error.value !== "" && (
        <small class="problem" role="alert">
          {error.value}
        </small>
      )}
    </label>
  );
}
