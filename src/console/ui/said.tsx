import type { ComponentChildren } from "preact";

/** Text that somebody else wrote: shown as it is, and apart, so that its direction changes nothing around it. */
export function Said({ children, title }: { readonly children: ComponentChildren; readonly title?: string }) {
  return (
    <bdi class="said" title={title}>
      {children}
    </bdi>
  );
}
