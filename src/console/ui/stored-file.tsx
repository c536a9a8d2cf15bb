/** A file that the broker stores beside messages: its name, its size, and a button that loads and saves it. */
import { useSignal } from "@preact/signals";
import { reasonOf, session } from "../session/session.ts";
import { safeName, sizeText } from "./bytes.ts";
import { download } from "./download.ts";
import { Said } from "./said.tsx";

interface Props {
  readonly url: string;
  readonly name: string;
  /** In bytes; undefined: not known. */
  readonly size: number | undefined;
}

export function StoredFile({ url, name, size }: Props) {
  const loaded = useSignal<number | null>(null);
  const error = useSignal<string | null>(null);
  const save = async () => {
    const connection = session.value?.connection;
    if (!connection || loaded.value !== null) return;
    loaded.value = 0;
    error.value = null;
    try {
      const chunks: Uint8Array<ArrayBuffer>[] = [];
      for await (const chunk of connection.delegator.download({ url })) {
        chunks.push(Uint8Array.from(chunk));
        loaded.value += chunk.length;
      }
      download(new Blob(chunks), safeName(name, "bin"), "application/octet-stream");
    } catch (reason) {
      error.value = reasonOf(reason);
    }
    loaded.value = null;
  };
  const isLoading = loaded.value !== null;
  return (
    <p class="text stored-file">
      <Said>{name}</Said> {size !== undefined && <small>{sizeText(size)}</small>}{" "}
      <button
        type="button"
        class="quiet"
        aria-label={`Download ${name}`}
        disabled={isLoading}
        onClick={() => void save()}
      >
        {loaded.value === null ? "Download" : progressText(loaded.value, size)}
      </button>
      {error.value !== null && <span role="alert">{error.value}</span>}
    </p>
  );
}

const progressText = (loaded: number, size: number | undefined): string =>
  size ? `${Math.floor((100 * loaded) / size)} %` : sizeText(loaded);
