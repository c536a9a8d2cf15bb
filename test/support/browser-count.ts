/** A reporter: says at the end how many tests drove a browser, and how many were skipped. */
import type { Reporter, TestModule } from "vitest/node";

const BROWSER = ["/test/console/", "/test/client/browser.test.ts"];

export class BrowserCount implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    let ran = 0;
    let skipped = 0;
    for (const module of modules.filter(({ moduleId }) => BROWSER.some((part) => moduleId.includes(part)))) {
      for (const one of module.children.allTests()) {
        if (!one.fullName.includes("in Chromium")) continue;
        if (one.result().state === "skipped") skipped += 1;
        else ran += 1;
      }
    }
    if (ran + skipped > 0) process.stdout.write(`\n browser tests: ${ran} ran, ${skipped} skipped\n`);
  }
}
