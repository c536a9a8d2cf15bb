import type { Part } from "../../schema/a2a.ts";
import { sizeOfStored } from "../../schema/file-url.ts";
import { adopt } from "../app/adopt.ts";
import { lazyFrom } from "../app/lazy-from.tsx";
import { Code } from "./code.tsx";
import { DiffLines } from "./diff.tsx";
import { FilePart } from "./file-part.tsx";
import { Json } from "./json.tsx";
import { Linked } from "./linked.tsx";
import { styles } from "./parts.css";
import { Said } from "./said.tsx";
import { isOfDelegation } from "./stored.ts";

adopt(styles);

const StoredFile = lazyFrom(
  () => import("./stored-file.tsx"),
  (module) => module.StoredFile,
);

/** The parts of a message or an artifact, each in the form of its type. */
export function Parts({ parts }: { readonly parts: readonly Part[] }) {
  return (
    <div class="parts">
      {parts.map((part, index) => (
        <OnePart key={index} part={part} />
      ))}
    </div>
  );
}

function OnePart({ part }: { readonly part: Part }) {
  const { text, raw, url, mediaType = "", filename } = part;
  if (text !== undefined) {
    if (mediaType === "text/x-diff" || mediaType === "text/x-patch") return <DiffLines text={text} />;
    if (isCode(mediaType)) return <Code>{text}</Code>;
    return (
      <p class="text">
        <Said>
          <Linked text={text} />
        </Said>
      </p>
    );
  }
  if (raw !== undefined) return <FilePart base64={raw} mediaType={mediaType} name={filename} />;
  if (url !== undefined) return <PartLink url={url} name={filename} size={sizeOfStored(part)} />;
  return <Json value={part.data} />;
}

const isCode = (mediaType: string): boolean =>
  /^(?:application\/|text\/(?:x-|css|html|javascript))/.test(mediaType);

interface LinkProps {
  readonly url: string;
  readonly name: string | undefined;
  readonly size?: number | undefined;
}

/** Only web addresses can be followed; others are text. */
export function PartLink({ url, name, size }: LinkProps) {
  if (isOfDelegation(url)) return <StoredFile url={url} name={name ?? "file"} size={size} />;
  const isWeb = URL.canParse(url) && /^https?:$/.test(new URL(url).protocol);
  return (
    <p class="text">
      {name !== undefined && (
        <>
          <Said>{name}</Said>:{" "}
        </>
      )}
      {isWeb ? (
        <a href={url} rel="noreferrer noopener" target="_blank">
          <Said>{url}</Said>
        </a>
      ) : (
        <Said>{url}</Said>
      )}
    </p>
  );
}
