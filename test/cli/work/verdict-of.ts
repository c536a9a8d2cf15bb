/** What becomes of a run of a preset's program that printed this. */
import { readFileSync } from "node:fs";
import { Head } from "../../../src/cli/work/capture.ts";
import type { Preset } from "../../../src/cli/work/presets/preset.ts";
import { PresetRun } from "../../../src/cli/work/presets/run.ts";

export interface End {
  readonly exitCode?: number;
  readonly stderr?: string;
  readonly resumes?: boolean;
}

export function verdictOf(
  preset: Preset,
  stdout: string,
  { exitCode = 0, stderr = "", resumes = false }: End = {},
) {
  const progress: string[] = [];
  const run = new PresetRun(preset, (text) => progress.push(text));
  // In pieces that cut characters and lines.
  const bytes = Buffer.from(stdout);
  const size = bytes.length > 100_000 ? 4096 : 7;
  for (let at = 0; at < bytes.length; at += size) run.add(bytes.subarray(at, at + size));
  run.addStderr(Buffer.from(stderr));
  const result = { exitCode, signal: null, stdout: new Head(1), stdoutEnd: "", stderr: stderr.trim() };
  return { verdict: run.verdict(result, resumes), run, progress };
}

/** Output of the real program, with ids and paths replaced. */
export const captured = (name: string): string =>
  readFileSync(new URL(`./captured/${name}.jsonl`, import.meta.url), "utf8");

export const lines = (...events: object[]): string =>
  events.map((event) => `${JSON.stringify(event)}\n`).join("");
