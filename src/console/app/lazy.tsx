/** The parts of the page in `later.ts`, each loaded when it is first shown. */
import type { ComponentChildren, ComponentType } from "preact";
import { lazyFrom } from "./lazy-from.tsx";

export const loadLater = () => import("./later.ts");
type Later = Awaited<ReturnType<typeof loadLater>>;

export const lazy = <Props extends object>(
  choose: (later: Later) => ComponentType<Props>,
  meanwhile?: ComponentChildren,
) => lazyFrom(loadLater, choose, meanwhile);
