import { useEffect, useMemo } from "preact/hooks";
import { Said } from "./said.tsx";

interface Props {
  readonly base64: string;
  readonly mediaType: string;
  readonly name: string | undefined;
}

/** Types that a browser draws and never runs. SVG may hold scripts, so it is only downloaded. */
const IMAGES = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"];

/** A file: an image is drawn, everything can be downloaded, nothing is opened. */
export function FilePart({ base64, mediaType, name = "file" }: Props) {
  const bytes = useMemo(() => bytesOf(base64), [base64]);
  const isImage = IMAGES.includes(mediaType);
  const type = isImage ? mediaType : "application/octet-stream";
  const url = useMemo(
    () => (bytes === null ? null : URL.createObjectURL(new Blob([bytes], { type }))),
    [bytes, type],
  );
  useEffect(() => (url === null ? undefined : () => URL.revokeObjectURL(url)), [url]);
  if (bytes === null || url === null) return <p class="text">A file that cannot be read: not base64.</p>;
  return (
    <figure class="file">
      {isImage && <img src={url} alt={name} />}
      <figcaption>
        <a href={url} download={name}>
          <Said>{name}</Said>
        </a>{" "}
        <small>{sizeOf(bytes.length)}</small>
      </figcaption>
    </figure>
  );
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> | null {
  try {
    return Uint8Array.from(atob(base64.replaceAll("-", "+").replaceAll("_", "/")), (char) =>
      char.charCodeAt(0),
    );
  } catch {
    return null;
  }
}

function sizeOf(bytes: number): string {
  if (bytes < 1000) return `${bytes} bytes`;
  return bytes < 1_000_000 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
