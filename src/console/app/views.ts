/** The views that are loaded when they are first shown, or soon after the page. */
import { lazy } from "./lazy.tsx";
import { lazyFrom } from "./lazy-from.tsx";

/** These have a file of their own; the others share one. */
const LOADS = {
  delegation: () => import("../delegation/view.ts"),
  charts: () => import("../charts/charts.tsx"),
};

export const Inbox = lazy((later) => later.Inbox);
export const Find = lazy((later) => later.Find);
export const Agents = lazy((later) => later.Agents);
export const Delegate = lazy((later) => later.Delegate);
export const DelegationPane = lazyFrom(LOADS.delegation, ({ DelegationPane: loaded }) => loaded);
export const PaneEdge = lazyFrom(LOADS.delegation, ({ PaneEdge: loaded }) => loaded, null);
export const Charts = lazyFrom(LOADS.charts, ({ Charts: loaded }) => loaded);

/** Loads them in advance, so that a page whose broker is away still has its views. */
export async function loadViews(): Promise<void> {
  // One that fails is tried again when it is shown.
  for (const load of Object.values(LOADS)) await load().catch(() => {});
}
