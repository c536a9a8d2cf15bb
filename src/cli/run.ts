/**
 * Runs one `errand` command and returns its exit code. `main.ts` ends the process.
 */
import type { Command } from "commander";
import type { ErrandApiError } from "../client/errors.ts";
import { delegationIdSchema } from "../schema/values.ts";
import { commandNameIn } from "./commands.ts";
import { connectToRead, type GlobalOptions } from "./context.ts";
import { locate } from "./discover.ts";
import { toFailure } from "./failure.ts";
import type { CliHost } from "./host.ts";
import { expandIds } from "./input/short-id.ts";
import { buildProgram, everyCommand, pathOf } from "./program.ts";
import { printError } from "./show/output.ts";
import { withSuggestion } from "./similar-agent.ts";
import { withStorageReason } from "./storage-reason.ts";

export { cliEnvironment } from "./environment.ts";

/** `argv` excludes node and the script, like `process.argv.slice(2)`. */
export async function runCli(argv: string[], host: CliHost): Promise<number> {
  let exitCode = 0;
  const unknownIds = new Map<string, ErrandApiError>();
  /** Rejects if help or the version could not be written. */
  let helped = Promise.resolve();
  const program = await buildProgram(
    {
      host,
      end: (code) => {
        exitCode = code;
      },
      unknownIds,
    },
    (written) => {
      const both = Promise.all([helped, written]);
      both.catch(() => undefined);
      helped = both.then(() => undefined);
    },
    commandNameIn(argv),
  );
  let command = "errand";
  let id: string | undefined;
  let options: GlobalOptions = {};
  // A usage error refers to the help of the command that failed.
  for (const one of everyCommand(program)) {
    one.exitOverride((error) => {
      command = pathOf(one);
      throw error;
    });
  }
  program.hook("preAction", async (_program, acting) => {
    command = pathOf(acting);
    options = acting.optsWithGlobals<GlobalOptions>();
    await expandIds(host, acting, unknownIds);
    // With several ids, each error names its own.
    const ids: unknown[] = [acting.processedArgs[0]].flat();
    id = ids.length === 1 ? delegationIdSchema.safeParse(ids[0]).data : undefined;
  });
  // The failed write reports a closed pipe. Without a listener, the event would end the process.
  for (const stream of [host.stdout, host.stderr]) stream.on("error", () => undefined);
  try {
    await program.parseAsync(withoutHelpCommand(program, argv), { from: "user" });
    return exitCode;
  } catch (ended) {
    // Commander ends a program that has printed its help by an error.
    const thrown = await helped.then(
      () => ended,
      (error: unknown) => {
        command = "errand";
        return error;
      },
    );
    const { exitCode: code, error: failure } = toFailure(thrown, command, id);
    const error = failure && (await completed(failure, host, options));
    if (error) await printError(host, error, wantsJson(argv)).catch(() => undefined);
    return code;
  }
}

/** Adds the reason to an error of the broker's Redis, and a similar name to that of an unknown agent. */
async function completed(
  error: ErrandApiError,
  host: CliHost,
  flags: GlobalOptions,
): Promise<ErrandApiError> {
  const [, name] = /^There is no agent '([a-z0-9_-]+)'/.exec(error.message) ?? [];
  if (error.code === "agent_unknown" && name !== undefined)
    return withSuggestion(error, name, await connectToRead(host, flags));
  // Without a status, it is of a command that uses Redis itself.
  if (error.code !== "redis_unavailable" || error.status === 0) return error;
  const { url } = await locate(host.env, flags);
  return withStorageReason(error, url);
}

/**
 * Turns `help agent put` into `agent put --help`: commander's own help command knows only one level. An unknown command
 * stays one, and is refused.
 */
function withoutHelpCommand(program: Command, argv: readonly string[]): string[] {
  const at = argv.indexOf("help");
  const isHelp = at >= 0 && commandAt(program, argv.slice(0, at))?.commands.length;
  if (!isHelp) return [...argv];
  const path = argv.slice(0, at);
  for (const word of argv.slice(at + 1).filter((one) => !one.startsWith("-"))) {
    const { commands = [] } = commandAt(program, path) ?? {};
    if (commands.length === 0) break;
    path.push(word);
    if (!commands.some((command) => command.name() === word)) return path;
  }
  return [...path, "--help"];
}

function commandAt(program: Command, path: readonly string[]): Command | undefined {
  return path.reduce<Command | undefined>(
    (found, word) => found?.commands.find((command) => command.name() === word),
    program,
  );
}

/** Also works if the options could not be parsed. Arguments after `--` belong to the command of `errand work`. */
function wantsJson(argv: readonly string[]): boolean {
  const end = argv.indexOf("--");
  return (end < 0 ? argv : argv.slice(0, end)).includes("--json");
}
