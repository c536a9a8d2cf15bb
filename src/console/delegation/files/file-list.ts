/** The files of a delegation: what its agent sent, what is in its reply, and what came with the task and the answers. */
import type { Artifact, Message, Part } from "../../../schema/a2a.ts";
import type { Delegation } from "../../../schema/delegation.ts";
import type { DelegationEvent } from "../../../schema/event.ts";
import { sizeOfStored } from "../../../schema/file-url.ts";
import { bytesIn, textBytes } from "../../ui/bytes.ts";
import { hasMarks } from "../../ui/marks.ts";
import { isOfDelegation } from "../../ui/stored.ts";
import { nameOf } from "../../ui/words.ts";
import { isFile } from "./count.ts";
import { type Kind, kindOf, typeOf } from "./kinds.ts";

/** One piece of content. An agent may send a long text in several parts. */
export interface Piece {
  /** `stored`: the broker has it beside the message. */
  readonly kind: Kind | "link" | "stored";
  readonly type: string;
  /** The text, the base64 of the bytes, the address, or the JSON as text. */
  readonly content: string;
  readonly isBytes: boolean;
  readonly size: number;
  readonly name: string | undefined;
}

export interface FileEntry {
  readonly key: string;
  readonly name: string;
  readonly description: string;
  /** In bytes, of what the page has. */
  readonly size: number;
  readonly parts: number;
  /** When it, or its latest part, came; null: unknown. */
  readonly at: string | null;
  readonly pieces: readonly Piece[];
}

export interface FileGroup {
  readonly title: string;
  readonly files: readonly FileEntry[];
}

type Source = Pick<
  Delegation,
  "artifacts" | "reply" | "message" | "history" | "target" | "delegator" | "created_at" | "finished_at"
>;

/** The groups that have files. */
export function filesOf(
  { artifacts, reply, message, history, target, delegator, created_at, finished_at }: Source,
  events: readonly DelegationEvent[],
): readonly FileGroup[] {
  const times = artifactTimes(events);
  const groups: FileGroup[] = [
    { title: `From ${target}`, files: artifacts.map((one, n) => artifactEntry(one, n, times)) },
    { title: "In its reply", files: reply ? messageEntries(reply, finished_at) : [] },
    { title: `With the task, from ${nameOf(delegator)}`, files: messageEntries(message, created_at) },
    {
      title: "In the conversation",
      files: history.flatMap((one, n) => messageEntries(one, timeOf(one), n)),
    },
  ];
  return groups.filter(({ files }) => files.length > 0);
}

function timeOf({ metadata }: Message): string | null {
  const at = metadata?.at;
  return typeof at === "string" && !Number.isNaN(Date.parse(at)) ? at : null;
}

/** When the latest part of each artifact came. */
function artifactTimes(events: readonly DelegationEvent[]): ReadonlyMap<unknown, string> {
  const times = new Map<unknown, string>();
  for (const event of events)
    if (event.status === "artifact" && event.artifact) times.set(event.artifact.artifactId, event.at);
  return times;
}

function artifactEntry(
  { artifactId, name = artifactId, description = "", parts }: Artifact,
  index: number,
  times: ReadonlyMap<unknown, string>,
): FileEntry {
  const pieces = piecesOf(parts, name);
  const size = pieces.reduce((sum, piece) => sum + piece.size, 0);
  const key = `artifact ${index} ${artifactId}`;
  return { key, name, description, size, parts: parts.length, at: times.get(artifactId) ?? null, pieces };
}

const messageEntries = ({ messageId, parts }: Message, at: string | null, index = 0): FileEntry[] =>
  parts.flatMap((part, place) => {
    if (!isFile(part)) return [];
    const name = part.filename ?? (part.url === undefined ? "file" : lastOf(part.url));
    const piece = pieceOf(part, name);
    return [
      {
        key: `${messageId} ${index} ${place}`,
        name,
        description: "",
        size: piece.size,
        parts: 1,
        at,
        pieces: [piece],
      },
    ];
  });

/** The last part of an address. */
const lastOf = (url: string): string => url.split(/[?#]/, 1)[0]?.split("/").findLast(Boolean) ?? url;

/** Texts in a row are one: an agent sends them in parts that may end anywhere. So are the pieces of a file. */
function piecesOf(parts: readonly Part[], name: string): readonly Piece[] {
  const joined: Part[] = [];
  for (const part of parts) {
    const last = joined.at(-1);
    if (last?.text !== undefined && part.text !== undefined && goesOn(last, part))
      joined[joined.length - 1] = { ...last, text: last.text + part.text };
    else if (
      last?.raw !== undefined &&
      part.raw !== undefined &&
      isCut(last.raw) &&
      part.filename !== undefined &&
      goesOn(last, part)
    )
      joined[joined.length - 1] = { ...last, raw: last.raw + part.raw };
    else joined.push(part);
  }
  return joined.map((part) => pieceOf(part, part.filename ?? name));
}

/** Whether base64 may go on: whole groups, and no padding at its end. */
const isCut = (raw: string): boolean => raw.length > 0 && raw.length % 4 === 0 && !raw.endsWith("=");

const goesOn = (last: Part, { mediaType, filename }: Part): boolean =>
  (mediaType === undefined || mediaType === last.mediaType) &&
  (filename === undefined || filename === last.filename);

function pieceOf(part: Part, name: string): Piece {
  const { text, raw, url, data, mediaType, filename } = part;
  const type = typeOf(mediaType, name);
  const kind = kindOf(type);
  if (text !== undefined) {
    const shown = kind === "image" || kind === "other" ? "text" : kind;
    const isPlain = type === "" && hasMarks(text);
    return {
      kind: isPlain ? "markdown" : shown,
      type,
      content: text,
      isBytes: false,
      size: textBytes(text),
      name: filename,
    };
  }
  if (raw !== undefined) {
    return { kind, type, content: raw, isBytes: true, size: bytesIn(raw), name: filename };
  }
  if (url !== undefined) {
    const kindOfUrl = isOfDelegation(url) ? "stored" : "link";
    return {
      kind: kindOfUrl,
      type,
      content: url,
      isBytes: false,
      size: sizeOfStored(part) ?? 0,
      name: filename ?? name,
    };
  }
  const json = JSON.stringify(data, null, 2) ?? "null";
  return {
    kind: "json",
    type: "application/json",
    content: json,
    isBytes: false,
    size: textBytes(json),
    name: filename,
  };
}
