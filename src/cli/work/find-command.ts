/** Checks that a command can be started, before anything is leased. Limit: on Windows it checks nothing. */
import { access, constants, stat } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { platform } from "node:process";
import { localError } from "../../client/errors.ts";

export async function checkCommand(
  command: string,
  path = "",
  recovery = "Pass an executable after '--', by name or by path.",
): Promise<void> {
  if (platform === "win32") return;
  const places = command.includes("/")
    ? [command]
    : path.split(delimiter).map((folder) => join(folder, command));
  for (const place of places) {
    if (await isExecutable(place)) return;
  }
  throw localError({
    code: "command_not_found",
    category: "CONFIG",
    detail: `the command '${command}' was not found or is not executable`,
    recovery,
  });
}

async function isExecutable(place: string): Promise<boolean> {
  try {
    await access(place, constants.X_OK);
    return (await stat(place)).isFile();
  } catch {
    return false;
  }
}
