/**
 * Runs one `errand` command and returns its exit code. `main.ts` ends the process.
 */
import { delegationIdSchema } from "../schema/values.ts";
import { toFailure } from "./failure.ts";
import type { CliHost } from "./host.ts";
import { buildProgram, everyCommand, pathOf } from "./program.ts";
import { printError } from "./show/output.ts";

/** `argv` excludes node and the script, like `process.argv.slice(2)`. */
export async function runCli(argv: string[], host: CliHost): Promise<number> {
  let exitCode = 0;
  const program = buildProgram({
    host,
    end: (code) => {
      exitCode = code;
    },
  });
  let command = "errand";
  let id: string | undefined;
  // A usage error refers to the help of the command that failed.
  for (const one of everyCommand(program)) {
    one.exitOverride((error) => {
      command = pathOf(one);
      throw error;
    });
  }
  program.hook("preAction", (_program, acting) => {
    command = pathOf(acting);
    id = delegationIdSchema.safeParse(acting.args[0]).data;
  });
  // The failed write reports a closed pipe. Without a listener, the event would end the process.
  for (const stream of [host.stdout, host.stderr]) stream.on("error", () => undefined);
  try {
    await program.parseAsync(argv, { from: "user" });
    return exitCode;
  } catch (thrown) {
    const { exitCode: code, error } = toFailure(thrown, command, id);
    if (error) await printError(host, error, wantsJson(argv)).catch(() => undefined);
    return code;
  }
}

/** Also works if the options could not be parsed. Arguments after `--` belong to the command of `errand work`. */
function wantsJson(argv: readonly string[]): boolean {
  const end = argv.indexOf("--");
  return (end < 0 ? argv : argv.slice(0, end)).includes("--json");
}
