import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/support/redis-server.ts"],
    testTimeout: 20_000,
    hookTimeout: 30_000,
    // Most of it waits, so several files at once hardly disturb each other, even on two cores.
    maxWorkers: 4,
  },
});
