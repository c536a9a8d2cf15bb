import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { Interrupt } from "../../schema/delegation.ts";
import { focusByKeyboard } from "../app/keys.ts";
import { Age } from "../ui/age.tsx";
import { InPlace } from "../ui/in-place.tsx";
import { undo } from "./answers.ts";
import { type Note, pending } from "./outcomes.ts";

interface Props {
  readonly interrupt: Interrupt;
  readonly note?: Note | undefined;
}

/** What became of a question, where its button was: an answer that can be taken back, or the outcome. */
export function GivenAnswer({ interrupt, note }: Props) {
  const waiting = pending.get(interrupt.id);
  const sentAt = waiting?.sentAt ?? null;
  const place = useRef<HTMLSpanElement>(null);
  // The button that gave the answer is inert now, and Undo is gone when the answer is being sent.
  useLayoutEffect(() => {
    const { activeElement } = document;
    const card = place.current?.closest("[data-question]");
    if (!card || (activeElement !== document.body && !activeElement?.closest("[inert]"))) return;
    if (activeElement === document.body || card.contains(activeElement))
      focusByKeyboard(place.current?.querySelector("button") ?? card);
  }, [waiting, note === undefined]);
  return (
    <span ref={place}>
      {waiting ? (
        <InPlace
          button={
            sentAt !== null && (
              <button type="button" onClick={() => undo(interrupt.id)}>
                Undo
              </button>
            )
          }
          aside={sentAt !== null && <SecondsLeft until={sentAt} />}
        >
          {waiting.done}, {sentAt === null ? "sending …" : "not sent yet."}
        </InPlace>
      ) : (
        note && <InPlace aside={note.at !== undefined && <Age at={note.at} ago />}>{note.text}</InPlace>
      )}
    </span>
  );
}

/** The seconds in which an answer can still be taken back. Screen readers do not announce them. */
function SecondsLeft({ until }: { readonly until: number }) {
  const left = () => Math.max(1, Math.round((until - performance.now()) / 1000));
  const seconds = useSignal(left());
  useEffect(() => {
    const timer = setInterval(() => {
      seconds.value = left();
    }, 1000);
    return () => clearInterval(timer);
  }, [until]);
  return <small aria-hidden="true">{seconds} s left</small>;
}
