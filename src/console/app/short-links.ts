/** The links of notifications: `#/d/dlg_…` opens a delegation, `#/agents/scout` an agent. */
import { effect } from "@preact/signals";
import { go, href, route } from "./route.ts";

export const followShortLinks = (): (() => void) =>
  effect(() => {
    void route.value;
    const [, kind, name = ""] = /^#\/(d|agents)\/([\w-]+)$/.exec(location.hash) ?? [];
    if (kind === undefined) return;
    go(kind === "d" ? href("live", { open: name }) : href("agents", { name }), { replace: true });
  });
