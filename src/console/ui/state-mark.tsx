import type { Phase } from "./words.ts";

/** The shape of a delegation's state, or of an agent's presence. */
type Sign = Phase | "online" | "busy" | "alarm" | "paused" | "recent" | "unseen";

/** A shape; its colour comes from the styles. Shape and word together never rely on colour. */
export function StateMark({ phase }: { readonly phase: Sign }) {
  return (
    <svg class={`mark ${phase}`} viewBox="0 0 16 16" aria-hidden="true">
      <Shape phase={phase} />
    </svg>
  );
}

function Shape({ phase }: { readonly phase: Sign }) {
  switch (phase) {
    case "queued":
    case "recent":
      return <circle class="hollow" cx="8" cy="8" r="4.5" />;
    case "working":
    case "online":
    case "busy":
      return <circle class="solid" cx="8" cy="8" r="5" />;
    case "awaits":
      return (
        <>
          <path class="line" d="M8 4v4m-4.5 4V8h9v4" />
          <path class="line dots" d="M8 3.5h.01m-4.51 9h.01m8.99 0h.01" />
        </>
      );
    case "asks":
      return (
        <>
          <circle class="hollow" cx="8" cy="8" r="6.75" />
          <path class="line" d="M6.2 6.4a1.9 1.9 0 1 1 2.7 1.7c-.6.3-.9.6-.9 1.2" />
          <circle class="solid" cx="8" cy="11.6" r=".9" />
        </>
      );
    case "completed":
      return <path class="line" d="m3 8.5 3.5 3.5L13 4.5" />;
    case "failed":
    case "alarm":
      return <path class="line" d="m4 4 8 8m0-8-8 8" />;
    case "paused":
      return <path class="line" d="M5.5 4v8m5-8v8" />;
    case "unseen":
      return <circle class="hollow dashed" cx="8" cy="8" r="4.5" />;
    case "canceled":
      return <path class="line" d="M3 8h10" />;
  }
}
