/** The parts of the page in `later.ts`, each loaded when it is first shown, and what else is loaded then. */
import type { ComponentChildren, ComponentType } from "preact";
import { lazyFrom } from "./lazy-from.tsx";

export const loadLater = () => import("./later.ts");
type Later = Awaited<ReturnType<typeof loadLater>>;

export const lazy = <Props extends object>(
  choose: (later: Later) => ComponentType<Props>,
  meanwhile?: ComponentChildren,
) => lazyFrom(loadLater, choose, meanwhile);

/** A view with a file of its own. All share styles of `later.ts`; without these, it would move when they come. */
export const lazyView = <Module, Props extends object>(
  load: () => Promise<Module>,
  choose: (module: Module) => ComponentType<Props>,
  meanwhile?: ComponentChildren,
) => lazyFrom(() => Promise.all([load(), loadLater()]).then(([module]) => module), choose, meanwhile);
