/** The script of the worker that formats texts. The page imports it only for its address. */
import type { Formatted } from "./to-html.ts";

export const workerUrl = import.meta.url;

if (typeof window === "undefined") {
  addEventListener("message", async ({ data }: MessageEvent<readonly string[]>) => {
    const { toHtml } = await import("./to-html.ts");
    for (const formatted of toHtml(data)) postMessage(formatted satisfies Formatted);
  });
}
