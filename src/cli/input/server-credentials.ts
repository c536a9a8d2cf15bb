/**
 * Reads the credentials for an A2A server: a token file, a JSON file with any scheme, stdin or the environment, never an
 * argument, because other users of the machine can read those. Errors show nothing of the content.
 */
import { damageOf } from "../../client/token.ts";
import { type Credentials, credentialsSchema } from "../../schema/credentials.ts";
import { issuesOf, readAs } from "../../schema/issues.ts";
import { usageError } from "../failure.ts";
import type { CliHost } from "../host.ts";
import { bytesFrom, decoded } from "./task.ts";

/** At most one may be given. */
export interface CredentialSources {
  readonly tokenFile?: string | undefined;
  readonly credentialsFile?: string | undefined;
  /** The token is in ERRAND_REMOTE_TOKEN. */
  readonly tokenEnv?: boolean | undefined;
}

const TOKEN = "It must be one line of printable characters.";

/** `prefix` begins the names of the options: `--push-` of `--push-token-file`. */
export async function readCredentials(
  host: CliHost,
  { tokenFile, credentialsFile, tokenEnv = false }: CredentialSources,
  prefix = "--",
): Promise<Credentials | undefined> {
  const given = [
    tokenFile !== undefined && "token-file",
    credentialsFile !== undefined && "credentials-file",
    tokenEnv && "token-env",
  ].filter((one) => typeof one === "string");
  const [first, second] = given.map((name) => `${prefix}${name}`);
  if (second) throw usageError(`the credentials are given twice: ${first} and ${second}`);
  if (tokenFile !== undefined)
    return bearer(await secretIn(host, tokenFile, "token"), nameOf(tokenFile, "token"));
  if (credentialsFile !== undefined) return credentialsIn(host, credentialsFile);
  if (!tokenEnv) return undefined;
  const { remoteToken } = host.env;
  if (remoteToken === undefined)
    throw usageError("ERRAND_REMOTE_TOKEN is not set", "Set it to the bearer token.");
  return bearer(remoteToken, "ERRAND_REMOTE_TOKEN");
}

const nameOf = (path: string, what: string): string => (path === "-" ? "stdin" : `the ${what} file ${path}`);

function bearer(text: string, source: string): Credentials {
  const damage = text.trim() === "" ? undefined : damageOf(text.trim());
  if (damage !== undefined) throw usageError(`the token in ${source} ${damage.what}`, damage.remedy);
  const parsed = credentialsSchema.safeParse({ scheme: "bearer", token: text.trim() });
  if (parsed.success) return parsed.data;
  throw usageError(`${source} contains no valid token`, TOKEN);
}

async function credentialsIn(host: CliHost, path: string): Promise<Credentials> {
  const source = nameOf(path, "credentials");
  let value: unknown;
  try {
    value = JSON.parse(await secretIn(host, path, "credentials"));
  } catch (error) {
    // The message of a syntax error shows the text around it.
    if (!(error instanceof SyntaxError)) throw error;
    throw usageError(`${source} is not JSON`, SHAPES);
  }
  const parsed = readAs(credentialsSchema, value);
  if (parsed.success) return parsed.data;
  const { text } = issuesOf(parsed.error, { whole: "the value" });
  throw usageError(`${source} contains no valid credentials: ${text}`, SHAPES);
}

const SHAPES =
  'Write {"scheme": "bearer", "token": "…"}, {"scheme": "basic", "username": "…", "password": "…"} or {"scheme": "headers", "headers": {"X-Api-Key": "…"}}.';

/** The path `-` stands for stdin. */
export async function secretIn(host: CliHost, path: string, what: string): Promise<string> {
  if (path === "-") return secretFromStdin(host, what, "Pipe it, or name a file.");
  const bytes = await bytesFrom(host, path).catch(() => {
    throw usageError(`cannot read ${nameOf(path, what)}`, "Pass a file that this user can read.");
  });
  return decoded(bytes, nameOf(path, what));
}

/** `advice`: what to do instead of typing it. */
export async function secretFromStdin(host: CliHost, what: string, advice = "Pipe it."): Promise<string> {
  if (host.isTty.stdin) throw usageError(`stdin is a terminal, which would show the ${what}`, advice);
  const bytes = await bytesFrom(host, "-").catch(() => {
    throw usageError("cannot read stdin", advice);
  });
  return decoded(bytes, "stdin");
}
