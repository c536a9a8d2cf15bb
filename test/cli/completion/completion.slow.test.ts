/**
 * Completion: the scripts in real shells, of which zsh and fish may be missing, and what the broker lists for them. The
 * scripts run the built program.
 */
import { execFile, spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import type { Shell } from "../../../src/cli/completion/scripts.ts";
import { buildProgram, everyCommand } from "../../../src/cli/program.ts";
import { EVENT_TYPES } from "../../../src/schema/event.ts";
import { as, client, OPERATOR, startBroker } from "../../support/broker.ts";
import { freshDir, MAIN } from "../../support/program.ts";
import { host, run } from "../fake-host.ts";

async function scriptIn(dir: string, shell: Shell = "bash"): Promise<string> {
  const { code, stdout, stderr } = await run(["completion", shell], { program: MAIN });
  expect([code, stderr]).toEqual([0, ""]);
  const path = join(dir, `errand.${shell}`);
  writeFileSync(path, stdout);
  return path;
}

/**
 * Prints what a shell offers for the last word of each line, with a line `%%` after it. The arguments are the script,
 * then the lines, whose words have single spaces between them.
 */
const OFFER: Readonly<Record<Shell, readonly [string, ...string[]]>> = {
  bash: [
    "bash",
    "--norc",
    "-uc",
    `source "$1"; shift
    for line; do
      IFS=' ' read -ra COMP_WORDS <<< "$line"
      [[ $line == *' ' ]] && COMP_WORDS+=('')
      COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
      case \${COMP_WORDS[0]} in npx) _errand_npx ;; *) _errand ;; esac
      printf '%s\\n' "\${COMPREPLY[@]}" %%
    done`,
    "bash",
  ],
  // Outside an interactive shell, what shows the words is not there.
  zsh: [
    "zsh",
    "-fc",
    `compdef() { true }
    compadd() { shift; print -rl -- "$@" }
    _files() { print -rl -- *(N) }
    _default() { true }
    _describe() { [[ $1 == -* ]] && shift; print -rl -- "\${(@)\${(@P)2}/:/	}" }
    source "$1"; shift
    for line; do
      words=("\${(@s: :)line}")
      CURRENT=$#words
      _errand
      print -- %%
    done`,
    "zsh",
  ],
  fish: [
    "fish",
    "--no-config",
    "-c",
    `source $argv[1]
    for line in $argv[2..-1]
      complete -C $line
      echo %%
    end`,
  ],
};
const isThere = (shell: Shell): boolean => spawnSync(shell, ["--version"]).error === undefined;
const SHELLS = (["bash", "zsh", "fish"] as const).filter(isThere);

/** The words that the shell offers for each line, that begin with its last word. */
async function offered(
  shell: Shell,
  script: string,
  dir: string,
  lines: string[],
  env = {},
): Promise<string[][]> {
  const [file, ...args] = OFFER[shell];
  const { stdout: out } = await promisify(execFile)(file, [...args, script, ...lines], {
    cwd: dir,
    encoding: "utf8",
    // Without `errand` on the PATH, the scripts run the program by its path.
    env: { PATH: process.env.PATH, HOME: dir, ...env },
  });
  return out
    .split(/^%%\n/m)
    .slice(0, -1)
    .map((part, at) =>
      part
        .split("\n")
        .map((line) => line.split("\t")[0] ?? "")
        .filter((word) => word !== "" && word.startsWith(lines[at]?.split(" ").at(-1) ?? "")),
    );
}

describe.each(SHELLS)("%s", (shell) => {
  test("completes commands, options, choices and files, also after npx", async () => {
    const dir = freshDir();
    const script = await scriptIn(dir, shell);
    writeFileSync(join(dir, "task.md"), "");
    const lines = {
      "errand de": ["demo", "delegate", "deny", "delete"],
      "npx errand-broker de": ["demo", "delegate", "deny", "delete"],
      "errand --json agent pu": ["put"],
      "errand --url list agent pu": ["put"],
      "errand delegate scout --wa": ["--wait", "--watch"],
      "errand delegate --js": ["--json"],
      "errand list --state c": ["completed", "canceled"],
      "errand list --state failed,c": ["failed,completed", "failed,canceled"],
      "errand list -o ta": ["target", "task"],
      "errand list -o id,name,ta": ["id,name,target", "id,name,task"],
      "errand agent get scout --output na": ["name"],
      "errand watch --types DELEGATION_S": EVENT_TYPES.filter((type) => type.startsWith("DELEGATION_S")),
      "errand token create ag": ["agent:"],
      "errand help ag": ["agent"],
      "errand delegate --file ta": ["task.md"],
      "errand restore ta": ["task.md"],
      "errand completion ": ["bash", "zsh", "fish"],
    };
    const found = await offered(shell, script, dir, Object.keys(lines));
    for (const [at, [line, words]] of Object.entries(lines).entries()) {
      expect([line, found[at]?.filter((word) => !word.startsWith("-") || line.includes("-")).sort()]).toEqual(
        [line, [...words].sort()],
      );
    }
  });

  test("completes agents, delegations and open questions, each where it is meant", async () => {
    const dir = freshDir();
    const script = await scriptIn(dir, shell);
    const bin = join(dir, "bin");
    mkdirSync(bin);
    const listing = {
      agents: "scout\\tonline: `touch hacked` $(touch hacked)\\nscribe\\toffline: a: b\\nbuilder\\t",
      delegations: "aaaaaaaa\\tasks\\nbbbbbbbb\\tworking",
      questions: "aaaaaaaa\\tasks: Go?",
    };
    const cases = Object.entries(listing).map(
      ([name, words]) => `*' --list ${name}') printf '${words}\\n' ;;`,
    );
    writeFileSync(join(bin, "errand"), `#!/bin/sh\ncase " $*" in ${cases.join(" ")} esac\n`, { mode: 0o755 });
    const lines = {
      "errand delegate sc": ["scout", "scribe"],
      "errand delegate --priority 3 sc": ["scout", "scribe"],
      "npx errand-broker list --target b": ["builder"],
      "errand delegate scout sc": [],
      "errand get ": ["aaaaaaaa", "bbbbbbbb"],
      "errand cancel xxxxxxxx ": ["aaaaaaaa", "bbbbbbbb"],
      "errand approve ": ["aaaaaaaa"],
    };
    const found = await offered(shell, script, dir, Object.keys(lines), {
      PATH: `${bin}:${process.env.PATH}`,
    });
    for (const [at, [line, words]] of Object.entries(lines).entries()) {
      const own = found[at]?.filter((word) => !word.startsWith("-")).sort();
      expect([line, own]).toEqual([line, words]);
    }
    expect(readdirSync(dir)).not.toContain("hacked");
  });
});

test("the script runs the program by its path, asks the broker, and offers nothing without one", async () => {
  const dir = freshDir();
  const script = await scriptIn(dir);
  const { url } = await startBroker();
  await client(url).agent("scout", { description: "counts" });
  const env = { ERRAND_URL: url, ERRAND_TOKEN: OPERATOR };
  expect(await offered("bash", script, dir, ["errand delegate sc"], env)).toEqual([["scout"]]);
  expect(await offered("bash", script, dir, ["errand delegate sc"])).toEqual([[]]);
}, 120_000);

test.each(["bash", "zsh", "fish"] as const)(
  "the script for %s has every command and every option",
  async (shell) => {
    const { code, stdout } = await run(["completion", shell]);
    expect(code).toBe(0);
    for (const command of everyCommand(
      await buildProgram({ host: host(), end: () => undefined, unknownIds: new Map() }),
    )) {
      expect(stdout).toContain(command.name());
      for (const { long, description } of command.options) {
        expect(stdout).toContain(shell === "fish" ? `-l ${long?.slice(2)}` : long);
        if (shell === "zsh") expect(stdout).toContain(description.replaceAll("'", "'\\''"));
      }
    }
  },
);

test("--list prints what this principal may see, with descriptions; a caller sees its own questions", async () => {
  const { url } = await startBroker();
  const api = client(url);
  await api.agent("scout", { description: "counts\twords \u001b[31m" });
  const { id } = (await api.delegate("scout", { task: "x" })).body;
  await api.interrupt((await api.lease("scout")).body.leases[0].lease_id, { text: "Which\nbranch?" });
  const list = async (what: string, token = OPERATOR, ...more: string[]) =>
    (await run(["completion", "--list", what, ...more], { env: { url, token } })).stdout;
  expect(await list("agents")).toMatch(/^scout\t(?:online|stale): counts words\n$/);
  const short = String(id).slice("dlg_0_".length, "dlg_0_".length + 8);
  expect(await list("delegations")).toMatch(new RegExp(`^${short}\\tasks, scout, \\d+s: x\\n$`));
  expect(await list("questions")).toMatch(new RegExp(`^${short}\\tasks, scout, \\d+s: Which branch\\?\\n$`));
  expect(JSON.parse(await list("agents", OPERATOR, "--json"))).toMatchObject({ word: "scout" });
  const { token } = await as(url, "viewer:wall");
  expect(await list("delegations", token)).toContain(short);
  expect(await list("questions", token)).toBe("");
});

test("an unknown shell, and none, are usage errors that list the supported ones", async () => {
  for (const argv of [["completion", "tcsh"], ["completion"], ["completion", "bash", "--list", "agents"]]) {
    const { code, stderr } = await run(argv);
    expect([code, stderr]).toEqual([64, expect.stringContaining("bash, zsh, fish")]);
  }
});
