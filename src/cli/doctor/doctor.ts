/** `errand doctor`: checks everything that a delegation depends on, and says how to fix each problem. */
import { statfs } from "node:fs/promises";
import { type Command, Option } from "commander";
import { type Cli, examples, type GlobalOptions } from "../context.ts";
import { locate } from "../discover.ts";
import { exitCodeOf, toFailure, worstExitCode } from "../failure.ts";
import type { CliHost } from "../host.ts";
import { oneLine, painter, print, printJson, withCommand } from "../show/output.ts";
import { terminalWidth } from "../show/terminal-width.ts";
import { wrapText } from "../show/text.ts";
import { PROGRAMS, type PresetName } from "../work/presets/programs.ts";
import { brokerChecks } from "./broker.ts";
import type { Check } from "./check.ts";
import {
  appendOnlyCheck,
  dataDirCheck,
  diskCheck,
  nodeCheck,
  redisHereChecks,
  settingsCheck,
} from "./local.ts";
import { presetChecks } from "./preset.ts";
import { proxyChecks } from "./proxy.ts";

const ABOUT = `
It checks this program (Node, settings, the data directory, how the embedded Redis last loaded its data) and the broker
(whether it responds, its version, your token, its clock, where links in notifications lead, its mail server, its Redis and
the Redis settings). If no broker responds, it
shows which Redis a broker would use here. With --preset it checks only the program of 'errand work --preset': its version,
beside the one that was tested, and its sign-in, as far as that shows without a call to its provider. The exit code is that
of the most serious failure. Warnings do not change the exit code.`;

export function addDoctor(program: Command, { host, end }: Cli): void {
  program
    .command("doctor")
    .description("check this program, the broker and its Redis; each problem comes with its fix")
    .addOption(
      new Option("--preset <program>", "check only this program of 'errand work --preset'").choices(
        Object.keys(PROGRAMS),
      ),
    )
    .addHelpText("after", ABOUT)
    .addHelpText(
      "after",
      examples(
        "errand doctor",
        "errand doctor --preset codex",
        "errand doctor --url http://broker:4180 --json | jq 'select(.status != \"ok\")'",
      ),
    )
    .action(async (_options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions & { readonly preset?: PresetName }>();
      const { preset } = options;
      const failed: number[] = [];
      for await (const check of preset ? presetChecks(host, preset) : allChecks(host, options)) {
        await (options.json ? printJson(host, check) : show(host, check));
        if (check.status === "fail") failed.push(exitCodeOf(check.category ?? "INTERNAL"));
      }
      end(worstExitCode(failed));
    });
}

async function* allChecks(host: CliHost, options: GlobalOptions): AsyncGenerator<Check> {
  yield nodeCheck();
  const here = await host.preflight();
  yield settingsCheck(here.settings());
  let found: Awaited<ReturnType<typeof locate>>;
  try {
    found = await locate(host.env, options);
  } catch (thrown) {
    const { error } = toFailure(thrown, "errand doctor");
    if (!error) throw thrown;
    const { message, recovery, category } = error;
    yield { check: "data_dir", status: "fail", detail: message, remedy: recovery, category };
    return;
  }
  yield await dataDirCheck(found, host.env.dataDir);
  const folder = found.local?.folder;
  const load = folder === undefined ? null : await here.lastLoad(folder);
  if (folder !== undefined && load !== null) yield appendOnlyCheck(load, folder);
  yield* proxyChecks(host, found);
  let isThere = false;
  let hasDisk = false;
  for await (const check of brokerChecks(found, host.version)) {
    yield check;
    isThere ||= check.check === "broker" && check.status !== "fail";
    hasDisk ||= check.check === "disk";
  }
  // A broker whose Redis is away cannot say it.
  if (!hasDisk && folder !== undefined) {
    const disk = await statfs(folder).catch(() => null);
    if (disk) yield* diskCheck(folder, disk.bavail * disk.bsize, disk.blocks * disk.bsize);
  }
  const isElsewhere = found.urlFrom === "--url" || found.urlFrom === "ERRAND_URL";
  if (!isThere && !isElsewhere) yield* redisHereChecks(await here.redis());
}

const NAME_WIDTH = "redis_durability".length;

async function show(host: CliHost, { check, status, detail, remedy }: Check): Promise<void> {
  const { green, yellow, red, dim } = painter(host, "stdout");
  const paint = { ok: green, warn: yellow, fail: red, skip: dim }[status];
  const indent = " ".repeat(NAME_WIDTH + 8);
  const columns = host.isTty.stdout ? terminalWidth(host, "stdout") : Number.POSITIVE_INFINITY;
  const fitted = (text: string) =>
    wrapText(withCommand(host, oneLine(text)), columns - indent.length).replaceAll("\n", `\n${indent}`);
  await print(host, `${paint(status.padEnd(4))}  ${check.padEnd(NAME_WIDTH)}  ${fitted(detail)}`);
  if (remedy !== undefined) await print(host, indent + fitted(remedy));
}
