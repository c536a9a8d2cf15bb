/**
 * Remembers the conversation of a preset's program for each context of each delegator, in a file of its own. Another
 * delegator never gets it, even with the same context id.
 */
import { createHash } from "node:crypto";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { cwd } from "node:process";
import type { Work } from "../../../client/work.ts";

export interface Session {
  readonly id: string | undefined;
  /** Undefined forgets it. */
  readonly keep: (id: string | undefined) => Promise<void>;
}

/** Programs keep conversations by folder, so the folder is a part of the name. */
export async function sessionOf(program: string, { delegation }: Work, stateHome?: string): Promise<Session> {
  const folder = join(stateHome || join(homedir(), ".local", "state"), "errand", "sessions");
  const { target, delegator, context_id } = delegation;
  const key = JSON.stringify([program, cwd(), target, delegator, context_id]);
  const file = join(folder, createHash("sha256").update(key).digest("hex"));
  const text = await readFile(file, "utf8").catch(() => "");
  return {
    // It becomes an argument.
    id: /^[\w][\w.-]{0,127}$/.test(text) ? text : undefined,
    keep: async (id) => {
      if (id === undefined) return rm(file, { force: true });
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await writeFile(file, id, { mode: 0o600 });
    },
  };
}
