/** Web addresses in plain text, as links. The text of a link is its address, so that nothing hides behind other words. */
import type { VNode } from "preact";
import { piecesOf } from "./pieces.ts";

export function Linked({ text }: { readonly text: string }) {
  return (
    <>
      {piecesOf(text).map(({ text: piece, isLink }, index): VNode | string =>
        isLink ? (
          <a key={index} href={piece} rel="noreferrer noopener" target="_blank">
            {piece}
          </a>
        ) : (
          piece
        ),
      )}
    </>
  );
}
