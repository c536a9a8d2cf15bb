/** A reporter: says at the end how many tests drove a browser and how many were skipped, and what `npm test` left out. */
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Reporter, TestModule } from "vitest/node";

const BROWSER = ["/test/console/", "/test/client/browser.slow.test.ts"];
const TESTS = fileURLToPath(new URL("..", import.meta.url));

export class Summary implements Reporter {
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
    if (process.env.ERRAND_TESTS !== "quick") return;
    const files = readdirSync(TESTS, { recursive: true, encoding: "utf8" });
    const slow = files.filter((name) => name.endsWith(".slow.test.ts")).length;
    process.stdout.write(`\n ${slow} slow test files (*.slow.test.ts) were not run: npm run slow\n`);
  }
}
