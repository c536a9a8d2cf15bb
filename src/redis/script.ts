/**
 * Runs a Lua script by its hash, and loads it if Redis does not have it (first use, restart, flush). Limit: the caller
 * says which arguments are keys, and parses the answer.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Redis } from "ioredis";

/** The text of a `.lua` file; its path is relative to `module`, the `import.meta.url` of the caller. */
export const readLua = (file: string, module: string): string => readFileSync(new URL(file, module), "utf8");

export class Script {
  readonly #text: string;
  readonly #sha: string;

  constructor(text: string) {
    this.#text = text;
    this.#sha = createHash("sha1").update(text).digest("hex");
  }

  async run(redis: Redis, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    try {
      return await redis.evalsha(this.#sha, keys.length, ...keys, ...args);
    } catch (error) {
      if (error instanceof Error && error.message.startsWith("NOSCRIPT")) {
        return await redis.eval(this.#text, keys.length, ...keys, ...args);
      }
      throw error;
    }
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
