/** A short text that the program remembers between its runs, in a file of its own that only this user can read. */
import { createHash } from "node:crypto";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";

export interface KeptText {
  readonly file: string;
  /** Undefined if there is none, or it does not match the pattern. */
  readonly read: () => Promise<string | undefined>;
  /** Undefined forgets it. */
  readonly keep: (text: string | undefined) => Promise<void>;
}

/** Where the program keeps what it remembers. `stateHome` is XDG_STATE_HOME. */
export const stateFolder = (stateHome: string | undefined): string =>
  join(stateHome || join(homedir(), ".local", "state"), "errand");

/** A name for what a key names, which may have any characters. */
export const hashOf = (key: readonly string[]): string =>
  createHash("sha256").update(JSON.stringify(key)).digest("hex");

/** `key` is what the text belongs to; the file's name is its hash. */
export function keptText(
  stateHome: string | undefined,
  folder: string,
  key: readonly string[],
  pattern: RegExp,
): KeptText {
  const name = hashOf(key);
  const file = join(stateFolder(stateHome), folder, name);
  return {
    file,
    read: async () => {
      const text = await readFile(file, "utf8").catch(() => "");
      return pattern.test(text) ? text : undefined;
    },
    keep: async (text) => {
      if (text === undefined) return rm(file, { force: true });
      await mkdir(dirname(file), { recursive: true, mode: 0o700 });
      const draft = `${file}.${process.pid}`;
      await writeFile(draft, text, { mode: 0o600 });
      await rename(draft, file);
    },
  };
}
