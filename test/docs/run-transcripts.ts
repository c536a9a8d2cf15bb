/** Runs the transcripts of a page against a broker of their own. Needs bash and curl. */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { OPERATOR } from "../support/broker.ts";
import { startFileBroker } from "../support/files.ts";
import { freshDir } from "../support/program.ts";
import { compare, filled, openShell, parseTranscripts } from "../support/transcript.ts";

const DEFAULT_URL = "http://127.0.0.1:4180";

/** A folder as `errand serve` creates it. */
function brokersFolder(): string {
  const folder = freshDir();
  mkdirSync(join(folder, ".errand"));
  writeFileSync(join(folder, ".errand", "operator-token"), `${OPERATOR}\n`);
  return folder;
}

/** Throws at the first command that prints something else than the page shows; returns the number of commands, and the broker. */
export async function runTranscripts(...pages: string[]): Promise<{ count: number; url: string }> {
  for (const program of ["bash", "curl"]) {
    try {
      execFileSync(program, ["--version"]);
    } catch (cause) {
      throw new Error(`the transcripts need ${program}, which does not run here; install it`, { cause });
    }
  }
  const { url } = await startFileBroker();
  const run = await openShell(brokersFolder());
  const said = new Map<string, string>();
  let count = 0;
  for (const page of pages) {
    for (const step of parseTranscripts(readFileSync(new URL(`../../${page}`, import.meta.url), "utf8"))) {
      const printed = await run(filled(step, said).replaceAll(DEFAULT_URL, url));
      const wrong = compare(step.expected, printed, said);
      if (wrong.length > 0) throw new Error(`${page}:${step.line}: $ ${step.command}\n${wrong.join("\n")}`);
      count += 1;
    }
  }
  return { count, url };
}
