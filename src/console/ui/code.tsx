import type { ComponentChildren } from "preact";

/** Text as it is, in its own lines; it scrolls sideways, also by keyboard. */
export function Code({
  children,
  kind = "",
}: {
  readonly children: ComponentChildren;
  readonly kind?: string;
}) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <pre class={`code ${kind}`} tabIndex={0}>
      {children}
    </pre>
  );
}
