import { useLayoutEffect, useRef } from "preact/hooks";
import { adopt } from "../app/adopt.ts";
import { styles } from "./markdown.css";
import { toFragment } from "./to-fragment.ts";

adopt(styles);

/** Text of strangers, formatted. It is set apart, like every text that somebody else wrote. */
export function Markdown({ text }: { readonly text: string }) {
  const place = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => place.current?.replaceChildren(toFragment(text)), [text]);
  return <div class="formatted said" dir="auto" ref={place} />;
}
