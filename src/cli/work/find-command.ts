/** Finds commands, so that one that is missing is noticed before anything is leased. Limit: on Windows only by whole path. */
import { access, constants, stat } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { platform } from "node:process";
import { localError } from "../../client/errors.ts";

export async function checkCommand(
  command: string,
  path = "",
  recovery = "Pass an executable after '--', by name or by path.",
): Promise<void> {
  if (platform === "win32" || (await findCommand(command, path)) !== undefined) return;
  throw localError({
    code: "command_not_found",
    category: "CONFIG",
    detail: `the command '${command}' was not found or is not executable`,
    recovery,
  });
}

/** Its path. */
export async function findCommand(command: string, path = ""): Promise<string | undefined> {
  const places = command.includes("/")
    ? [command]
    : path.split(delimiter).map((folder) => join(folder, command));
  for (const place of places) {
    if (await isExecutable(place)) return place;
  }
  return undefined;
}

async function isExecutable(place: string): Promise<boolean> {
  try {
    await access(place, constants.X_OK);
    return (await stat(place)).isFile();
  } catch {
    return false;
  }
}
