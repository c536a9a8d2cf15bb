/** The views that are loaded when they are first shown, or soon after the page. */
import { loadFiles } from "../delegation/files/lazy-tab.ts";
import { lazy } from "./lazy.tsx";
import { lazyFrom } from "./lazy-from.tsx";

/** These have a file of their own; the others share one. */
const LOADS = {
  agents: () => import("../agents/agents.tsx"),
  delegation: () => import("../delegation/view.ts"),
  charts: () => import("../charts/charts.tsx"),
  find: () => import("../find/find.tsx"),
  delegate: () => import("../delegate/delegate.tsx"),
  palette: () => import("../palette/palette.tsx"),
  answered: () => import("../answered/answered.tsx"),
  files: loadFiles,
};

export const Inbox = lazy((later) => later.Inbox);
export const Agents = lazyFrom(LOADS.agents, ({ Agents: loaded }) => loaded);
export const DelegationPane = lazyFrom(LOADS.delegation, ({ DelegationPane: loaded }) => loaded);
export const PaneEdge = lazyFrom(LOADS.delegation, ({ PaneEdge: loaded }) => loaded, null);
export const Answered = lazyFrom(LOADS.answered, ({ Answered: loaded }) => loaded);
export const Charts = lazyFrom(LOADS.charts, ({ Charts: loaded }) => loaded);
export const Find = lazyFrom(LOADS.find, ({ Find: loaded }) => loaded);
export const Delegate = lazyFrom(LOADS.delegate, ({ Delegate: loaded }) => loaded);
export const Palette = lazyFrom(LOADS.palette, ({ Palette: loaded }) => loaded, null);

/** Loads them in advance, so that a page whose broker is away still has its views. */
export async function loadViews(): Promise<void> {
  // One that fails is tried again when it is shown.
  for (const load of Object.values(LOADS)) await load().catch(() => {});
}
