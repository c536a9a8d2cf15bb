/** The scripts on the keys of files, in lua/. Limit: a script returns texts and numbers; the caller parses them. */

import type { Redis } from "../../redis/connect.ts";
import { keys } from "../../redis/keys.ts";
import { readLua, Script } from "../../redis/script.ts";

const head = readLua("./lua/keys.lua", import.meta.url);

/** Runs even if Redis has no memory left, so that files can be given up. */
const always = (file: string) => scriptOf(file, "flags=allow-oom");
const unlessFull = (file: string) => scriptOf(file, "");

function scriptOf(file: string, flags: string) {
  const script = new Script(`#!lua ${flags}\n${head}${readLua(`./lua/${file}.lua`, import.meta.url)}`);
  return (redis: Redis, ...args: readonly (string | number)[]): Promise<unknown> =>
    script.run(redis, [keys.files], args);
}

export const scripts = {
  begin: unlessFull("begin"),
  open: always("open"),
  claim: always("claim"),
  release: always("release"),
  abandon: always("abandon"),
  copying: always("copying"),
  count: always("count"),
  finish: always("finish"),
  drop: always("drop"),
  read: always("read"),
  pin: unlessFull("pin"),
  unpin: always("unpin"),
  forget: always("forget"),
  list: always("list"),
  take: always("take"),
  refs: always("refs"),
  settle: always("settle"),
  gone: always("gone"),
};

/** The texts in a script's answer. */
export const textsIn = (answer: unknown): string[] | null =>
  Array.isArray(answer) ? answer.map((one) => (one === null ? "" : String(one))) : null;
