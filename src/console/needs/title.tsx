import type { Ref } from "preact";
import { href } from "../app/route.ts";
import { hasQuestions } from "../data/delegations.ts";
import { mine } from "./mine.ts";

/** The heading of the questions with their number, which is also announced. */
export function NeedsTitle({ heading }: { readonly heading?: Ref<HTMLHeadingElement> }) {
  const number = mine.value.length;
  return (
    <>
      <div class="needs-head">
        <h1 id="needs-title" tabIndex={-1} ref={heading ?? null}>
          Needs you {number > 0 && <span class="badge">{number}</span>}
        </h1>
        <a href={href("answered")}>Answered</a>
      </div>
      <p class="sr-only" role="status">
        {number > 0 ? `${number} waiting for you` : hasQuestions.value && "Nothing waits for you"}
      </p>
    </>
  );
}
