import { useSignal } from "@preact/signals";

/** What the button of a copy says, for a while also how it ended; and the copy itself. */
export function useCopy(text: string, label = "Copy") {
  const verb = useSignal(label);
  const copy = async () => {
    verb.value = (await toClipboard(text)) ? "Copied" : "Not copied";
    setTimeout(() => {
      verb.value = label;
    }, 2000);
  };
  return { verb: verb.value, copy };
}

/** A line to paste elsewhere, with a button that copies it. */
export function CopyLine({ text, label = text }: { readonly text: string; readonly label?: string }) {
  const { verb, copy } = useCopy(text);
  return (
    <span class="copy-line">
      <code>{label}</code>
      <button type="button" class="quiet" onClick={() => void copy()} aria-label={`${verb} ${label}`}>
        {verb}
      </button>
    </span>
  );
}

/** Returns whether the text was copied. */
async function toClipboard(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Not allowed, or absent, as on plain HTTP.
  }
  let isCopied = false;
  const put = (event: ClipboardEvent) => {
    event.clipboardData?.setData("text/plain", text);
    event.preventDefault();
    isCopied = true;
  };
  document.addEventListener("copy", put);
  document.execCommand("copy");
  document.removeEventListener("copy", put);
  return isCopied;
}
