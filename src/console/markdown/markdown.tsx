import { useLayoutEffect, useRef } from "preact/hooks";
import { adopt } from "../app/adopt.ts";
import { styles } from "./markdown.css";
import { toFragment } from "./to-fragment.ts";

adopt(styles);

/** Formatted text from agents and users, set apart from the console's own text like all such text. */
export function Markdown({ text }: { readonly text: string }) {
  const place = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => place.current?.replaceChildren(toFragment(text)), [text]);
  return <div class="formatted said" dir="auto" ref={place} />;
}
