/** The three commands to try that `errand serve` prints on a terminal once the broker is ready. */
import { constants } from "node:fs";
import { access, readFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { shellWord } from "./client-access.ts";

export interface Place {
  /** The folder in which the broker was started, and in which the commands work. */
  readonly folder: string;
  /** The PATH. */
  readonly path: string;
  /** The file of the program that runs. */
  readonly program: string;
  /** The variables by which the CLI finds the broker; see client-access.ts. */
  readonly variables: readonly string[];
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

/** Replaces the sign-in link where none is printed. */
export const howToSignIn = async (place: Place): Promise<string> =>
  `for a link that signs in to the console: ${await commandIn(place)} sessions link`;

/** How a shell in the folder runs this program, for this broker. */
async function commandIn(place: Place): Promise<string> {
  // Those without a value are secrets, which people set themselves.
  const assignments = place.variables.filter((one) => one.includes("="));
  return [...assignments, await programIn(place)].join(" ");
}

async function programIn({ folder, path, program }: Place): Promise<string> {
  // npx runs the program of the folder's own package, or of a package installed there.
  if ((await isOwnFolder(folder)) || (await isRunnable(join(folder, "node_modules/.bin/errand"))))
    return "npx errand";
  for (const directory of path.split(delimiter)) {
    if (directory.startsWith("/") && (await isRunnable(join(directory, "errand")))) return "errand";
  }
  return `node ${shellWord(program)}`;
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
