/** The part of the environment that the CLI needs. It is not validated; only `serve` validates all variables. */
import type { CliHost } from "./host.ts";

export function cliEnvironment(env: NodeJS.ProcessEnv): Pick<CliHost, "env" | "childEnv"> {
  return {
    env: {
      url: env.ERRAND_URL || undefined,
      token: env.ERRAND_TOKEN || undefined,
      remoteToken: env.ERRAND_REMOTE_TOKEN || undefined,
      egressProxy: env.ERRAND_EGRESS_PROXY || undefined,
      dataDir: env.ERRAND_DATA_DIR || ".errand",
      isCommand: Boolean(env.ERRAND_LEASE_ID),
    },
    childEnv: env,
  };
}
