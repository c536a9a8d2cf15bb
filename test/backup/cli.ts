/** Runs `errand` on a data directory, with the tests' Redis program. */
import { run } from "../cli/fake-host.ts";

export const cli = (dataDir: string, ...argv: string[]) =>
  run(argv, {
    env: { dataDir },
    childEnv: {
      PATH: process.env.PATH,
      ...(process.env.ERRAND_REDIS_BIN !== undefined && { ERRAND_REDIS_BIN: process.env.ERRAND_REDIS_BIN }),
      ERRAND_DATA_DIR: dataDir,
    },
  });
