import { defineConfig } from "vitest/config";
import { BrowserCount } from "./test/support/browser-count.ts";
import { LongFirst } from "./test/support/long-first.ts";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    reporters: ["default", new BrowserCount()],
    globalSetup: ["test/support/redis-server.ts"],
    // They end what hangs. A busy machine may take ten times as long as a quiet one.
    testTimeout: 60_000,
    hookTimeout: 90_000,
    // Most of it waits, so several files at once hardly disturb each other, even on two cores.
    maxWorkers: 4,
    // The files share what they import: importing it anew for each took a fifth of the time.
    isolate: false,
    sequence: { sequencer: LongFirst },
  },
});
