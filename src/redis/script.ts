/**
 * Runs a Lua script by its hash, and loads it if Redis does not have it (first use, restart, flush, another master).
 * Limit: the caller says which arguments are keys, and parses the answer.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { isInCluster } from "./cluster.ts";
import type { Redis } from "./connect.ts";
import { isScriptAtMovingSlot } from "./errors.ts";

/** The text of a `.lua` file; its path is relative to `module`, the `import.meta.url` of the caller. */
export const readLua = (file: string, module: string): string => readFileSync(new URL(file, module), "utf8");

/**
 * Runs first in a Cluster. While a slot moves key by key, its keys are on two nodes. A script that uses keys which it
 * did not declare, as ours do, would fail half-way, or take the keys on the other node for missing. Until the slot has
 * moved, both nodes refuse a command for two keys that neither has, so the script ends before it does anything.
 */
const WHOLE_SLOT = `do
  local tag = KEYS[1] and string.match(KEYS[1], '^{[^}]*}')
  if tag then redis.call('EXISTS', tag .. ':nothing', tag .. ':nothing either') end
end
`;
/** A slot with little in it has moved by then. */
const MOVE_TRIES = 10;
const MOVE_PAUSE_MS = 100;

interface Text {
  readonly text: string;
  readonly sha: string;
}

const textOf = (text: string): Text => ({ text, sha: createHash("sha1").update(text).digest("hex") });

export class Script {
  readonly #text: Text;
  #inCluster: Text | undefined;

  constructor(text: string) {
    this.#text = textOf(text);
  }

  async run(
    redis: Redis,
    keys: readonly string[],
    args: readonly (string | number | Buffer)[],
  ): Promise<unknown> {
    if (!isInCluster(redis)) return run(redis, this.#text, keys, args);
    // After the first line, which has the flags.
    this.#inCluster ??= textOf(this.#text.text.replace("\n", () => `\n${WHOLE_SLOT}`));
    for (let tries = 1; ; tries += 1) {
      try {
        return await run(redis, this.#inCluster, keys, args);
      } catch (error) {
        if (!isScriptAtMovingSlot(error) || tries === MOVE_TRIES) throw error;
        await sleep(MOVE_PAUSE_MS);
      }
    }
  }
}

async function run(
  redis: Redis,
  { text, sha }: Text,
  keys: readonly string[],
  args: readonly (string | number | Buffer)[],
): Promise<unknown> {
  try {
    return await redis.evalsha(sha, keys.length, ...keys, ...args);
  } catch (error) {
    if (error instanceof Error && error.message.startsWith("NOSCRIPT")) {
      return await redis.eval(text, keys.length, ...keys, ...args);
    }
    throw error;
  }
}

const anyScript = new Script(`#!lua flags=allow-oom
return redis.call(ARGV[1], KEYS[1], unpack(ARGV, 2))`);

/** A small write that must also work at full memory, because it keeps a broker running or lets it free memory. */
export async function writeEvenIfFull(
  redis: Redis,
  command: "HSET" | "HSETNX" | "ZADD",
  key: string,
  ...args: readonly (string | number)[]
): Promise<void> {
  await anyScript.run(redis, [key], [command, ...args]);
}

/** A value as a Lua literal, for the generated head of a script. */
export function toLua(value: unknown): string {
  if (value === null || value === undefined) return "nil";
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  if (typeof value === "string") return JSON.stringify(value).replaceAll("\\/", "/");
  if (Array.isArray(value)) return `{${value.map(toLua).join(",")}}`;
  const members = Object.entries(value).filter(([, member]) => member !== undefined && member !== null);
  return `{${members.map(([name, member]) => `[${toLua(name)}]=${toLua(member)}`).join(",")}}`;
}
