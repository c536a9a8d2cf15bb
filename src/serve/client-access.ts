/** How the CLI in another shell reaches a broker that `errand serve` has started. */
import { join, resolve } from "node:path";
import type { Announced } from "./announcement.ts";

interface Started {
  readonly dataDir: string;
  readonly url: string;
  /** The operator token is not the one in the data directory. */
  readonly hasOwnToken: boolean;
  readonly announced: Pick<Announced, "isFound" | "other">;
}

/**
 * The environment that the CLI needs, as assignments for a shell. A name without a value is a secret to fill in. The
 * CLI finds a data directory by itself only if its name is `.errand`.
 */
export function variablesFor({ dataDir, url, hasOwnToken, announced: { isFound } }: Started): string[] {
  const token = hasOwnToken ? ["ERRAND_TOKEN"] : [];
  if (isFound)
    return [...(dataDir === resolve(".errand") ? [] : [`ERRAND_DATA_DIR=${shellWord(dataDir)}`]), ...token];
  // The CLI sends the operator token only to the gateway that it finds in the data directory.
  const read = `ERRAND_TOKEN="$(cat ${quoted(join(dataDir, "operator-token"))})"`;
  return [`ERRAND_URL=${url}`, ...(hasOwnToken ? token : [read])];
}

/** A line for the user. */
export function howClientsConnect(started: Started): string {
  const { isFound, other } = started.announced;
  const variables = variablesFor(started).join(" and ");
  if (other !== null && !isFound)
    return `the CLI here uses the broker at ${other.url} until that one stops; to use this one now, set ${variables}`;
  if (variables === "") return `the CLI finds this broker and its token in ${resolve(".")} and below`;
  return `to use the CLI in another shell, set ${variables}`;
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** Quoted unless it is one plain word for every shell. */
export const shellWord = (text: string): string => (/^[\w./@+:-]+$/.test(text) ? text : quoted(text));
