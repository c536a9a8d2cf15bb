/**
 * What a client reads from its environment: ERRAND_URL and ERRAND_TOKEN, and the names of host and process for a worker
 * id. It goes through `globalThis`, so that a browser's bundle needs no Node and finds nothing. Limit: these two variables
 * only; the broker's own settings are read in config.ts.
 */

export interface Target {
  readonly url: string;
  readonly token: string | undefined;
}

/** The default address of a broker. */
const LOCAL_URL = "http://127.0.0.1:4180";

interface Environment {
  readonly ERRAND_URL?: string | undefined;
  readonly ERRAND_TOKEN?: string | undefined;
}

/** Typed as browsers see it: there may be no process, and one that a bundler put there may have no environment. */
interface Surroundings {
  readonly process?: {
    readonly env?: Environment;
    readonly pid?: number;
    getBuiltinModule?(id: "node:os"): { hostname(): string } | undefined;
  };
}
const surroundings: Surroundings = globalThis;

/** What is given wins; an empty variable counts as unset. */
export function locate(given: { url?: string | undefined; token?: string | undefined }): Target {
  const env = surroundings.process?.env;
  const envUrl = env?.ERRAND_URL || undefined;
  const url = given.url ?? envUrl ?? LOCAL_URL;
  const isTheirs = envUrl === undefined || given.url === undefined || originOf(url) === originOf(envUrl);
  // The environment's token is for the environment's broker, and goes to no other.
  return { url, token: given.token ?? ((isTheirs && env?.ERRAND_TOKEN) || undefined) };
}

const originOf = (url: string): string => (URL.canParse(url) ? new URL(url).origin : url);

/** A new `worker_id`: host name, process id and a random part, so that no two workers share one. */
export function newWorkerId(): string {
  const { process } = surroundings;
  const host = process?.getBuiltinModule?.("node:os")?.hostname() ?? "client";
  const name = host.replace(/[^\x21-\x7e]/g, "_").slice(0, 100);
  const random = crypto.getRandomValues(new Uint32Array(1))[0]?.toString(36) ?? "";
  return [name, process?.pid, random.slice(0, 5).padStart(5, "0")].filter(Boolean).join("-");
}
