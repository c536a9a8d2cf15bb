/** What to try once the broker is ready, as `errand serve` prints it on a terminal: three lines to paste. */
import { constants } from "node:fs";
import { access, readFile } from "node:fs/promises";
import { delimiter, join } from "node:path";

export interface Place {
  /** Where the broker was started, and where the lines work. */
  readonly folder: string;
  /** The PATH. */
  readonly path: string;
  /** The file of the program that runs. */
  readonly program: string;
}

export async function nextSteps(place: Place): Promise<string> {
  const errand = await commandIn(place);
  return [
    "next, paste in other terminals here: an agent (any command), a task for it, the events",
    `  ${errand} work --agent scout -- wc -w`,
    `  ${errand} delegate scout "count these words" --wait`,
    `  ${errand} watch`,
  ].join("\n");
}

/** How a shell in the folder runs this program. */
async function commandIn({ folder, path, program }: Place): Promise<string> {
  // npx runs the program of the folder's own package, or of a package installed there.
  if ((await isOwnFolder(folder)) || (await isRunnable(join(folder, "node_modules/.bin/errand"))))
    return "npx errand";
  for (const directory of path.split(delimiter)) {
    if (directory.startsWith("/") && (await isRunnable(join(directory, "errand")))) return "errand";
  }
  return `node ${/^[\w./@+-]+$/.test(program) ? program : `'${program.replaceAll("'", "'\\''")}'`}`;
}

async function isOwnFolder(folder: string): Promise<boolean> {
  try {
    return JSON.parse(await readFile(join(folder, "package.json"), "utf8")).name === "errand";
  } catch {
    return false;
  }
}

const isRunnable = (path: string): Promise<boolean> =>
  access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
