/** What was seen of each program, in results.json, and the table of docs/recipes.md that is made of it. */
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { PROGRAMS } from "../../src/cli/work/presets/programs.ts";
import { CELLS } from "./cells.ts";
import { CELL_NAMES } from "./names.ts";

const FILE = new URL("./results.json", import.meta.url);
const PAGE = new URL("../../docs/recipes.md", import.meta.url);
const BEGIN = "<!-- works-with: written by npm run prove -- agents --write -->";
const END = "<!-- works-with: end -->";

const programSchema = z.object({
  name: z.string(),
  packages: z.array(z.string()),
  date: z.string(),
  /** By the name of the cell: true, or what is shown in its place. */
  cells: z.record(z.string(), z.union([z.literal(true), z.string()])),
});
export type ProgramResult = z.infer<typeof programSchema>;
const resultsSchema = z.record(z.string(), programSchema);

/** Replaces what was known of these programs, row by row if the versions are the same. */
export async function writeResults(seen: Readonly<Record<string, ProgramResult>>): Promise<void> {
  const known = resultsSchema.parse(JSON.parse(await readFile(FILE, "utf8").catch(() => "{}")));
  const all = { ...known };
  for (const [name, result] of Object.entries(seen)) {
    const before = known[name];
    const isSame = before?.packages.join() === result.packages.join();
    all[name] = isSame ? { ...result, cells: { ...before?.cells, ...result.cells } } : result;
  }
  await writeFile(FILE, `${JSON.stringify(all, null, 2)}\n`);
  await replaceBetween(BEGIN, END, tableOf(all));
}

/** Replaces what docs/recipes.md has between two markers. */
export async function replaceBetween(begin: string, end: string, text: string): Promise<void> {
  const page = await readFile(PAGE, "utf8");
  const [before, rest] = page.split(begin);
  const [, after] = rest?.split(end) ?? [];
  if (before === undefined || after === undefined)
    throw new Error(`${fileURLToPath(PAGE)} has no markers: ${begin} … ${end}`);
  await writeFile(PAGE, `${before}${begin}\n\n${text}\n\n${end}${after}`);
}

/** One column for each program; what is no plain yes is a note below. */
export function tableOf(results: Readonly<Record<string, ProgramResult>>): string {
  const order = Object.keys(PROGRAMS);
  const programs = Object.entries(results)
    .sort(([one], [other]) => order.indexOf(one) - order.indexOf(other))
    .map(([, result]) => result);
  const notes: string[] = [];
  const shown = (result: true | string | undefined): string => {
    if (result === true) return "yes";
    if (result === undefined) return "not run";
    if (!result.startsWith("no: ")) return result;
    const note = result.slice("no: ".length);
    if (!notes.includes(note)) notes.push(note);
    return `no (${notes.indexOf(note) + 1})`;
  };
  const row = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  const rows = CELL_NAMES.map((name) =>
    row([CELLS[name].title, ...programs.map(({ cells }) => shown(cells[name]))]),
  );
  return [
    row(["", ...programs.map(({ name }) => name)]),
    row(["---", ...programs.map(() => "---")]),
    row(["version", ...programs.map(({ packages }) => packages.map(versionOf).join(", "))]),
    row(["run on", ...programs.map(({ date }) => date)]),
    ...rows,
    ...(notes.length === 0 ? [] : ["", ...notes.map((note, index) => `${index + 1}. ${note}`)]),
  ].join("\n");
}

/** The versions of packages; the first without its name. */
export const versionOf = (pack: string, index: number): string => {
  const at = pack.lastIndexOf("@");
  return index === 0
    ? pack.slice(at + 1)
    : `${pack.slice(pack.lastIndexOf("/") + 1, at)} ${pack.slice(at + 1)}`;
};
