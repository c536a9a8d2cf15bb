/**
 * Where a client looks for a broker that it was not told: ERRAND_URL and ERRAND_TOKEN, where there is an
 * environment at all. Limit: these two names only, through `globalThis`, so that a browser's bundle stays free
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
const surroundings: { readonly process?: { readonly env?: Environment } } = globalThis;

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
