/**
 * What a client takes from its surroundings, where it has any: ERRAND_URL and ERRAND_TOKEN, and the name of the host and
 * process for a worker id. Limit: these two variables only, through `globalThis`, so that a browser's bundle stays free
 * of Node and finds nothing; what the broker itself is set to is read in config.ts alone.
 */

export interface Target {
  readonly url: string;
  readonly token: string | undefined;
}

/** Where a broker listens unless it is told otherwise. */
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

/** A new name for a worker, as `worker_id` takes it: host, process id and a random part, so that no two are equal. */
export function newWorkerId(): string {
  const { process } = surroundings;
  const host = process?.getBuiltinModule?.("node:os")?.hostname() ?? "client";
  const name = host.replace(/[^\x21-\x7e]/g, "_").slice(0, 100);
  const random = crypto.getRandomValues(new Uint32Array(1))[0]?.toString(36) ?? "";
  return [name, process?.pid, random.slice(0, 5).padStart(5, "0")].filter(Boolean).join("-");
}
