import type { ComponentChildren } from "preact";

interface Props {
  readonly title: string;
  readonly children: ComponentChildren;
  /** A command that fills the view. */
  readonly line?: ComponentChildren;
}

/** A view without rows: what it will show, and how to fill it. */
export function Empty({ title, children, line }: Props) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      <p>{children}</p>
      {line}
    </div>
  );
}
