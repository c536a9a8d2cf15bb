import { availableParallelism } from "node:os";
import { expect, test } from "vitest";
import { ConfigError, readConfig } from "../../src/config.ts";

test("ERRAND_WORKERS is a number of gateways, or auto for one for each core", () => {
  expect(readConfig({}).ERRAND_WORKERS).toBe(1);
  expect(readConfig({ ERRAND_WORKERS: "4" }).ERRAND_WORKERS).toBe(4);
  expect(readConfig({ ERRAND_WORKERS: "auto" }).ERRAND_WORKERS).toBe(Math.min(64, availableParallelism()));
  for (const wrong of ["0", "65", "1.5", "all", " "]) {
    expect(() => readConfig({ ERRAND_WORKERS: wrong }), wrong).toThrow(ConfigError);
  }
});
