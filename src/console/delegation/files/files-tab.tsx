/** The tab of a delegation's files: a list, each to copy and to download, with a preview that opens. */
import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { Delegation } from "../../../schema/delegation.ts";
import type { DelegationEvent } from "../../../schema/event.ts";
import { adopt } from "../../app/adopt.ts";
import { Age } from "../../ui/age.tsx";
import { bytesOf, safeName, sizeText, textIn } from "../../ui/bytes.ts";
import { useCopy } from "../../ui/copy.tsx";
import { download } from "../../ui/download.ts";
import { Empty } from "../../ui/empty.tsx";
import { Said } from "../../ui/said.tsx";
import { count } from "../../ui/words.ts";
import { type FileEntry, type FileGroup, filesOf } from "./file-list.ts";
import { styles } from "./files.css";
import { endingOf, typeWord } from "./kinds.ts";
import { Preview } from "./preview.tsx";

adopt(styles);

/** In characters: an agent may name any type. */
const MAX_TYPE = 60;

/** So few files are open at once. */
const OPEN = 3;
/** How many are listed at first, and how many more with each click. */
const STEP = 100;
/** Of one file; an agent may mix thousands. */
const MAX_PIECES = 20;

interface Props {
  readonly delegation: Delegation;
  /** Null: not read yet. */
  readonly events: readonly DelegationEvent[] | null;
}

export function FilesTab({ delegation, events }: Props) {
  // Its texts and data may be large, and the page is drawn again with each event.
  const groups = useMemo(() => filesOf(delegation, events ?? []), [delegation, events]);
  const isFew = groups.flatMap(({ files }) => files).length <= OPEN;
  if (groups.length === 0) {
    return (
      <Empty title="No files">
        Files and other output that the agent sends while it works appear here, and files that came with the
        task.
      </Empty>
    );
  }
  return (
    <>
      {groups.map((group) => (
        <Group key={group.title} group={group} isFew={isFew} />
      ))}
    </>
  );
}

function Group({ group, isFew }: { readonly group: FileGroup; readonly isFew: boolean }) {
  const most = useSignal(STEP);
  const { title, files } = group;
  const more = files.length - most.value;
  return (
    <section class="file-group" aria-label={title}>
      <h2>
        {title} <small>{count(files.length, "file")}</small>
      </h2>
      <ul class="files">
        {files.slice(0, most.value).map((file) => (
          <File key={file.key} file={file} isOpenFirst={isFew} />
        ))}
      </ul>
      {more > 0 && (
        <button
          type="button"
          onClick={() => {
            most.value += STEP;
          }}
        >
          Show more ({count(more, "file")})
        </button>
      )}
    </section>
  );
}

function File({ file, isOpenFirst }: { readonly file: FileEntry; readonly isOpenFirst: boolean }) {
  // As it was when it came: a further file closes none.
  const isOpen = useSignal(isOpenFirst);
  const { name, description, pieces, parts, size, at } = file;
  const [only] = pieces;
  const isLink = pieces.length === 1 && only?.kind === "link";
  const type =
    pieces.length > 1
      ? "several types"
      : typeWord(only?.kind === "markdown" ? "text/markdown" : (only?.type ?? "")).slice(0, MAX_TYPE);
  const facts = [isLink ? "link" : type, !isLink && sizeText(size), parts > 1 && count(parts, "part")];
  return (
    <li class={isOpen.value ? "file-row open" : "file-row"}>
      <div class="file-head">
        <h3>
          <button
            type="button"
            class="file-toggle"
            aria-expanded={isOpen.value}
            onClick={() => {
              isOpen.value = !isOpen.value;
            }}
          >
            <Said>{name}</Said>
          </button>
        </h3>
        <span class="file-facts" title={pieces.length === 1 ? only?.type : undefined}>
          <Said>{facts.filter(Boolean).join(" · ")}</Said>
          {at !== null && (
            <>
              {" "}
              · <Age at={at} ago />
            </>
          )}
        </span>
        <FileTools file={file} />
      </div>
      {isOpen.value && (
        <div class="preview">
          {description !== "" && (
            <p class="dim">
              <Said>{description.slice(0, 2_000)}</Said>
            </p>
          )}
          {pieces.slice(0, MAX_PIECES).map((piece, index) => (
            <Preview key={index} piece={piece} />
          ))}
          {pieces.length > MAX_PIECES && (
            <p class="dim">{count(pieces.length - MAX_PIECES, "more part")} in the download.</p>
          )}
          {pieces.length === 0 && <p class="dim">It is empty.</p>}
        </div>
      )}
    </li>
  );
}

/** Takes a file elsewhere. An address is only copied: what is there may be anything. */
function FileTools({ file: { name, pieces } }: { readonly file: FileEntry }) {
  const [first] = pieces;
  const only = pieces.length === 1 ? first : undefined;
  const text = useMemo(() => textOf(pieces), [only?.content, pieces.length]);
  const { verb, copy } = useCopy(text ?? "");
  const save = () => {
    const safe = safeName(name, only ? endingOf(only.type) : "json");
    const bytes = only?.isBytes ? bytesOf(only.content) : null;
    if (bytes) download(bytes, safe, "application/octet-stream");
    else download(text ?? only?.content ?? "", safe, "text/plain");
  };
  return (
    <span class="file-tools">
      {text !== null && (
        <button type="button" class="quiet" aria-label={`${verb} ${name}`} onClick={() => void copy()}>
          {verb}
        </button>
      )}
      {only?.kind !== "link" && only?.kind !== "stored" && (
        <button type="button" class="quiet" aria-label={`Download ${name}`} onClick={save}>
          Download
        </button>
      )}
    </span>
  );
}

/** What can be copied: a text, an address, or all parts as JSON. Null: bytes that are no text. */
function textOf(pieces: FileEntry["pieces"]): string | null {
  const [only, second] = pieces;
  if (only === undefined) return "";
  if (second)
    return JSON.stringify(
      pieces.map(({ type, content }) => ({ type, content })),
      null,
      2,
    );
  if (!only.isBytes) return only.content;
  return only.kind === "image" || only.kind === "other" ? null : textIn(only.content);
}
