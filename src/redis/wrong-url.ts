/** Explains errors that a wrong URL causes: the database, the user, the password, or a port of another service. */
import { type RedisTarget, serverOf } from "./target.ts";

const CAUSES: readonly (readonly [sign: RegExp, text: (server: string, database: number) => string])[] = [
  [
    /DB index is out of range|invalid DB index/i,
    (server, database) =>
      `Redis at ${server} has no database ${database}. Correct the number at the end of the URL.`,
  ],
  [/SELECT is not allowed in cluster mode/i, (server, database) => onlyOneDatabase(server, database)],
  [
    /^WRONGPASS/,
    (server) => `Redis at ${server} refuses the user or password (WRONGPASS). Correct them in the URL.`,
  ],
  [/^NOAUTH/, (server) => `Redis at ${server} needs a password (NOAUTH): redis://:PASSWORD@HOST.`],
  [
    /Unknown RESP type/i,
    (server) => `What answers at ${server} is no Redis. Correct the address in the URL.`,
  ],
];

export const onlyOneDatabase = (server: string, database: number): string =>
  `Redis at ${server} is a node of a Cluster, which has no database ${database}. Remove the number at the end of the URL.`;

/** Null for any other error. */
export function wrongUrlText(error: unknown, target: RedisTarget, database: number): string | null {
  if (!(error instanceof Error)) return null;
  const cause = CAUSES.find(([sign]) => sign.test(error.message));
  return cause ? cause[1](serverOf(target), database) : null;
}
