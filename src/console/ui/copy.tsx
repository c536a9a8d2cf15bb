import { useSignal } from "@preact/signals";

/** A line to paste elsewhere, with a button that copies it. */
export function CopyLine({ text, label = text }: { readonly text: string; readonly label?: string }) {
  const copied = useSignal(false);
  const copy = async () => {
    // Absent on plain HTTP, except for localhost; the line can still be selected.
    await navigator.clipboard?.writeText(text);
    copied.value = true;
    setTimeout(() => {
      copied.value = false;
    }, 2000);
  };
  return (
    <span class="copy-line">
      <code>{label}</code>
      <button type="button" class="quiet" onClick={() => void copy()} aria-label={`Copy ${label}`}>
        {copied.value ? "Copied" : "Copy"}
      </button>
    </span>
  );
}
