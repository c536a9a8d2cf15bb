import type { ComponentChildren } from "preact";
import { CommandLine } from "./command-line.tsx";

interface Props {
  readonly title: string;
  readonly children: ComponentChildren;
  /** A command that fills the view: `errand watch`. */
  readonly line?: string | undefined;
}

/** A view without rows: what it will show, and how to fill it. */
export function Empty({ title, children, line }: Props) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      <p>{children}</p>
      {line !== undefined && <CommandLine command={line.replace(/^errand /, "")} />}
    </div>
  );
}
