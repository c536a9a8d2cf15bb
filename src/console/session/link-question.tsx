import { useLayoutEffect, useRef } from "preact/hooks";
import { waitingIds } from "../needs/answers.ts";
import { Problem } from "../ui/problem.tsx";
import { useAction } from "../ui/use-action.ts";
import { count } from "../ui/words.ts";
import { acceptLink, declineLink, type OpenedLink, openedLink } from "./link.ts";
import { session } from "./session.ts";

/** Asks whether a link that was opened may replace the present session. */
export function LinkQuestion() {
  return openedLink.value && <Question link={openedLink.value} />;
}

function Question({ link }: { readonly link: OpenedLink }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const { isRunning, error, run } = useAction();
  useLayoutEffect(() => dialog.current?.showModal(), []);
  const present = session.value?.principal;
  const { found, because } = link;
  const waiting = waitingIds().length;
  const title = found ? `Sign in as ${found.principal}?` : "The link does not sign in";
  return (
    <dialog
      ref={dialog}
      class="link-question"
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        void declineLink();
      }}
    >
      <h2>{title}</h2>
      {found ? (
        <>
          <p>
            You are signed in as <b>{present}</b>. This link is for <b>{found.principal}</b>. If you did not
            ask for it, stay: whoever made it could see what you do after it.
          </p>
          {waiting > 0 && (
            <p>
              {count(waiting, "answer")} of {present} not sent yet: signing in discards{" "}
              {waiting === 1 ? "it" : "them"}.
            </p>
          )}
        </>
      ) : (
        <p>
          {because} You are still signed in as <b>{present}</b>.
        </p>
      )}
      <Problem error={error} />
      <div class="buttons">
        <button
          type="button"
          class="primary"
          autofocus
          disabled={isRunning}
          onClick={() => void declineLink()}
        >
          Stay {present}
        </button>
        {found && (
          <button type="button" disabled={isRunning} onClick={() => void run(acceptLink)}>
            Sign in as {found.principal}
          </button>
        )}
      </div>
    </dialog>
  );
}
