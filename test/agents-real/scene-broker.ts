/**
 * The broker of the scene: what `errand serve` runs, with its private Redis, but in this process and with a clock that the
 * scene moves. Nobody waits for an hour. Limit: the clock of the machine, and so that of the workers, does not move.
 */

import { readConfig } from "../../src/config.ts";
import { startGateway } from "../../src/gateway/gateway.ts";
import { startEmbedded } from "../../src/redis/embedded/embedded.ts";
import { secureDataDir } from "../../src/redis/embedded/home.ts";
import { randomId } from "../../src/redis/shards.ts";
import { embeddedOptions } from "../../src/serve/embedded-options.ts";
import { optionsOf } from "../../src/serve/running.ts";
import { createLog } from "../../src/telemetry/log.ts";
import type { BenchBroker } from "./bench.ts";

const STEP_SECONDS = 60;

export interface SceneBroker extends BenchBroker {
  readonly close: () => Promise<void>;
  /** Time passes, minute by minute, with all that becomes due in it. */
  readonly pass: (seconds: number) => Promise<void>;
}

export async function startSceneBroker(dataDir: string): Promise<SceneBroker> {
  await secureDataDir(dataDir);
  const config = readConfig({ ERRAND_DATA_DIR: dataDir, ERRAND_PORT: "0" });
  const log = createLog("error", (line) => process.stderr.write(line));
  const redis = embeddedOptions(
    config,
    process.env,
    dataDir,
    (line) => process.stderr.write(`${line}\n`),
    log,
  );
  const embedded = await startEmbedded(redis);
  const target = { socket: embedded.socket, password: embedded.password };
  const operatorToken = `errand_operator_${randomId(52)}`;
  const clock = { offset_ms: 0 };
  const options = optionsOf({ config, target, operatorToken, onRedisLost: () => undefined, log });
  const gateway = await startGateway(options, { clock });
  return {
    url: `http://127.0.0.1:${gateway.port}`,
    token: operatorToken,
    pass: async (seconds) => {
      for (let left = seconds; left > 0; left -= STEP_SECONDS) {
        clock.offset_ms += Math.min(left, STEP_SECONDS) * 1000;
        while ((await gateway.sweep.tick()) > 0);
      }
    },
    close: async () => {
      await gateway.close({ idleGrace: false });
      await embedded.stop();
    },
  };
}
