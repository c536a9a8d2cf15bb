/**
 * `errand`: runs one command and turns whatever happens into an exit code.
 * Limit: it never ends the process; `main.ts` does, with the code it is given.
 */
import { delegationIdSchema } from "../schema/values.ts";
import { toFailure } from "./failure.ts";
import type { CliHost } from "./host.ts";
import { buildProgram, everyCommand, pathOf } from "./program.ts";
import { complain } from "./show/output.ts";

/** `argv` without node and the script, as in `process.argv.slice(2)`. */
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
  // Whose mistake it was, so that its own help is named.
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
  // A reader of stdout that went away is told by the write that fails; unheard, the event would be fatal.
  for (const stream of [host.stdout, host.stderr]) stream.on("error", () => undefined);
  try {
    await program.parseAsync(argv, { from: "user" });
    return exitCode;
  } catch (thrown) {
    const { exitCode: code, error } = toFailure(thrown, command, id);
    if (error) await complain(host, error, wantsJson(argv)).catch(() => undefined);
    return code;
  }
}

/** Also where the arguments could not be parsed; what follows `--` is not ours. */
function wantsJson(argv: readonly string[]): boolean {
  const end = argv.indexOf("--");
  return (end < 0 ? argv : argv.slice(0, end)).includes("--json");
}
