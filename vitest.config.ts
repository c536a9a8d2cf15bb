import { defineConfig } from "vitest/config";
import { Summary } from "./test/support/summary.ts";

/** `npm test` runs the others, unless it names files; `npm run slow` runs these; vitest itself runs both. */
const SLOW = "test/**/*.slow.test.ts";
const { ERRAND_TESTS } = process.env;

export default defineConfig({
  test: {
    include: [ERRAND_TESTS === "slow" ? SLOW : "test/**/*.test.ts"],
    exclude: ERRAND_TESTS === "quick" ? [SLOW] : [],
    reporters: ["default", new Summary()],
    globalSetup: ["test/support/redis-server.ts"],
    // They end what hangs. A busy machine may take ten times as long as a quiet one.
    testTimeout: 120_000,
    hookTimeout: 90_000,
    // As `until` does. Without it, a busy machine has one second.
    expect: { poll: { timeout: 50_000 } },
    // Most of it waits, so several files at once hardly disturb each other, even on two cores.
    maxWorkers: 4,
    // The files share what they import: importing it anew for each took a fifth of the time.
    isolate: false,
  },
});
