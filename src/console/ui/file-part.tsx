import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { adopt } from "../app/adopt.ts";
import { bytesOf, safeName, sizeText } from "./bytes.ts";
import { styles } from "./parts.css";
import { Said } from "./said.tsx";

adopt(styles);

interface Props {
  readonly base64: string;
  readonly mediaType: string;
  readonly name: string | undefined;
}

/** Types that a browser draws and never runs. SVG may hold scripts, so it is only downloaded. */
const IMAGES = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"];

/** A file: an image is drawn, everything can be downloaded, nothing is opened. */
export function FilePart({ base64, mediaType, name = "file" }: Props) {
  const isImage = IMAGES.includes(mediaType);
  const { url, size } = useBytes(base64, isImage ? mediaType : "application/octet-stream");
  if (url === null) return <NotBase64 />;
  return (
    <figure class="file">
      {isImage && <Image url={url} name={name} />}
      <figcaption>
        <a href={url} download={safeName(name, "bin")}>
          <Said>{name}</Said>
        </a>{" "}
        <small>{sizeText(size)}</small>
      </figcaption>
    </figure>
  );
}

/** An image alone. */
export function Picture({ base64, mediaType, name = "picture" }: Props) {
  const { url } = useBytes(base64, mediaType);
  return url === null ? <NotBase64 /> : <Image url={url} name={name} />;
}

const NotBase64 = () => <p class="text">A file that cannot be read: not base64.</p>;

/** An address of the bytes within this page; null if they are not base64. */
function useBytes(base64: string, type: string) {
  const bytes = useMemo(() => bytesOf(base64), [base64]);
  const url = useMemo(
    () => (bytes === null ? null : URL.createObjectURL(new Blob([bytes], { type }))),
    [bytes, type],
  );
  useEffect(() => (url === null ? undefined : () => URL.revokeObjectURL(url)), [url]);
  return { url, size: bytes?.length ?? 0 };
}

function Image({ url, name }: { readonly url: string; readonly name: string }) {
  const isBroken = useSignal(false);
  if (isBroken.value) return <p class="dim">The browser cannot draw this picture.</p>;
  return (
    <img
      class="picture"
      src={url}
      alt={name}
      onError={() => {
        isBroken.value = true;
      }}
    />
  );
}
