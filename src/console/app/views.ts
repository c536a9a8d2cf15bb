/** The views that are loaded when they are first shown, or soon after the page. */
import { loadFiles } from "../delegation/files/lazy-tab.ts";
import { lazy, lazyView } from "./lazy.tsx";

const loadDelegation = () => import("../delegation/view.ts");

export const Inbox = lazy((later) => later.Inbox);
// These have a file of their own; the others share one.
export const Agents = lazyView(
  () => import("../agents/agents.tsx"),
  ({ Agents: loaded }) => loaded,
);
export const DelegationPane = lazyView(loadDelegation, ({ DelegationPane: loaded }) => loaded);
export const PaneEdge = lazyView(loadDelegation, ({ PaneEdge: loaded }) => loaded, null);
export const Answered = lazyView(
  () => import("../answered/answered.tsx"),
  ({ Answered: loaded }) => loaded,
);
export const Charts = lazyView(
  () => import("../charts/charts.tsx"),
  ({ Charts: loaded }) => loaded,
);
export const Find = lazyView(
  () => import("../find/find.tsx"),
  ({ Find: loaded }) => loaded,
);
export const Delegate = lazyView(
  () => import("../delegate/delegate.tsx"),
  ({ Delegate: loaded }) => loaded,
);
export const Palette = lazyView(
  () => import("../palette/palette.tsx"),
  ({ Palette: loaded }) => loaded,
  null,
);

/** Loads them in advance, so that a page whose broker is away still has its views, and none loses what is typed for it. */
export async function loadViews(): Promise<void> {
  const views = [Palette, Find, Inbox, Agents, DelegationPane, PaneEdge, Charts, Delegate, Answered];
  // One that fails is tried again when it is shown.
  for (const load of [...views.map(({ early }) => early), loadFiles]) await load().catch(() => {});
}
