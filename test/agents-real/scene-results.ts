/** What was seen of the scene, in scene.json, and the table of docs/recipes.md that is made of it. */
import { writeFile } from "node:fs/promises";
import { replaceBetween, versionOf } from "./results.ts";

const FILE = new URL("./scene.json", import.meta.url);
const BEGIN = "<!-- scene: written by npm run prove -- agents --scene --write -->";
const END = "<!-- scene: end -->";

/** The rows of the table. */
const STEPS = {
  asked: "A delegates by MCP; B wants a shell command, and asks",
  shown: "`errand inbox` and the console, in Chromium, show the exact command",
  hour: "B's worker is killed (-9), an hour passes, its lease is over, the question is open",
  approved: "a person edits the arguments in the console, and approves",
  once: "another worker goes on: the edited command ran once, the original one never",
  result: "A gets the result from the call in which it waits",
} as const;
export type SceneStep = keyof typeof STEPS;

export interface SceneResult {
  readonly packages: readonly string[];
  readonly date: string;
  /** The steps that were seen, by `--ask`. */
  readonly steps: Readonly<Record<string, readonly string[]>>;
}

export async function writeScene(result: SceneResult): Promise<void> {
  await writeFile(FILE, `${JSON.stringify(result, null, 2)}\n`);
  await replaceBetween(BEGIN, END, sceneTable(result));
}

export function sceneTable({ packages, date, steps }: SceneResult): string {
  const columns = Object.entries(steps);
  const row = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return [
    row([
      `Claude Code ${packages.map(versionOf).join(", ")}, ${date}`,
      ...columns.map(([ask]) => `\`--ask ${ask}\``),
    ]),
    row(["---", ...columns.map(() => "---")]),
    ...Object.entries(STEPS).map(([name, title]) =>
      row([title, ...columns.map(([, seen]) => (seen.includes(name) ? "yes" : "no"))]),
    ),
  ].join("\n");
}
