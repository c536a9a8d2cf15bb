import { type Message, textOf } from "../../schema/a2a.ts";
import { useCopy } from "../ui/copy.tsx";
import { download } from "../ui/download.ts";

interface Props {
  /** Of the delegation. */
  readonly id: string;
  readonly reply: Message;
}

/** Takes the reply elsewhere: by the clipboard, or as a file. */
export function ReplyActions({ id, reply }: Props) {
  const { text, type, ending } = replyFile(reply);
  const { verb, copy } = useCopy(text, "Copy reply");
  if (text === "") return null;
  const save = () => download(text, `reply-${id.slice(-8)}.${ending}`, type);
  return (
    <>
      <button type="button" onClick={() => void copy()}>
        {verb}
      </button>
      <button type="button" onClick={save}>
        Download reply
      </button>
    </>
  );
}

/** A reply in words as its text; with anything else in it, as JSON. */
export function replyFile(reply: Pick<Message, "parts">): {
  readonly text: string;
  readonly type: string;
  readonly ending: "md" | "txt" | "json";
} {
  const parts = reply.parts.filter(({ text }) => text !== "");
  if (parts.length === 0) return { text: "", type: "text/plain", ending: "txt" };
  if (parts.some(({ text }) => text === undefined)) {
    const [only] = parts;
    const value = parts.length === 1 && only && "data" in only ? only.data : parts;
    return { text: JSON.stringify(value, null, 2), type: "application/json", ending: "json" };
  }
  const isMarkdown = parts.every(({ mediaType }) => mediaType === "text/markdown");
  return {
    text: textOf({ parts }),
    type: isMarkdown ? "text/markdown" : "text/plain",
    ending: isMarkdown ? "md" : "txt",
  };
}
