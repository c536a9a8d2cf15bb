/** Every command's help is complete, and docs/recipes.md lists every command. */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { buildProgram, everyCommand, pathOf } from "../../src/cli/program.ts";
import { host, run } from "./fake-host.ts";

const program = await buildProgram({ host: host(), end: () => undefined, unknownIds: new Map() });
const page = readFileSync(new URL("../../docs/recipes.md", import.meta.url), "utf8");
const flat = (text: string) => text.replaceAll(/\s+/g, " ");

describe.each(everyCommand(program).map((command) => [pathOf(command), command] as const))(
  "%s",
  (path, command) => {
    test("--help describes every option and has an example", async () => {
      const { code, stdout, stderr } = await run([...path.split(" ").slice(1), "--help"]);
      expect([code, stderr]).toEqual([0, ""]);
      expect(stdout).toContain(`Usage: ${path}`);
      expect(stdout).toMatch(/\nExamples:\n {2}\$ /);
      expect(stdout.split("Examples:")[1]).toContain(path);
      for (const { long, description } of command.options) {
        expect([long, description]).not.toEqual([long, ""]);
        expect(flat(stdout)).toContain(flat(`${description}`));
      }
      if (command.commands.length === 0) expect(page).toContain(`\n| \`${path}\` | `);
    });
  },
);

test("help and docs promise what holds, and use values that exist", async () => {
  const help = async (...argv: string[]) => flat((await run([...argv, "--help"])).stdout);
  const delegate = await help("delegate");
  expect(delegate).toContain("If the broker cannot be reached, the command fails at once.");
  expect(await help("token", "revoke")).toMatch(/errand token revoke [0-9a-z]{10} Options of/);
  for (const command of ["work", "list", "redrive"]) expect(await help(command)).toContain("command_failed");
  // Of the six options, each says so.
  expect((await help("agent", "put")).match(/--votes.*?operator only/g)).toHaveLength(6);
  const errors = readFileSync(new URL("../../docs/errors.md", import.meta.url), "utf8");
  expect(errors).toContain("`command_failed`");
});

test("the help of a change names no defaults: what is not given stays", async () => {
  const help = async (...argv: string[]) => flat((await run([...argv, "--help"])).stdout);
  for (const command of ["schedule", "notify"]) {
    expect(await help(command, "create")).toContain("(default: ");
    expect(await help(command, "change")).not.toContain("(default");
  }
});

test("help COMMAND prints the help of a subcommand, too, and refuses an unknown one", async () => {
  for (const path of [["agent", "put"], ["delegate"], ["agent"], []]) {
    const { stdout } = await run([...path, "--help"]);
    expect(await run(["help", ...path])).toEqual({ code: 0, stdout, stderr: "" });
  }
  expect((await run(["agent", "help", "put"])).stdout).toContain("Usage: errand agent put");
  // Nothing runs.
  expect((await run(["help", "delegate", "scout", "x"])).stdout).toContain("Usage: errand delegate");
  const unknown = await run(["help", "frob"]);
  expect([unknown.code, unknown.stdout]).toEqual([64, ""]);
  expect(unknown.stderr).toContain("unknown command 'frob'");
  expect((await run(["help", "agent", "frob"])).stderr).toContain("unknown command 'frob'");
});

test("a usage error names the command's help, and suggests a correction", async () => {
  for (const [argv, said] of [
    [
      ["delegate", "scout", "x", "--wiat"],
      "unknown option '--wiat' (Did you mean --wait?). See 'errand delegate --help'.",
    ],
    [["agent", "ptu"], "unknown command 'ptu' (Did you mean put?). See 'errand agent --help'."],
    [["delgate"], "unknown command 'delgate' (Did you mean delegate?). See 'errand --help'."],
    [["get", "dlg_1", "--timeout", "3"], "--timeout requires --wait. See 'errand get --help'."],
    [["agent", "put"], "missing required argument 'name'. See 'errand agent put --help'."],
    [["watch", "--types", "NOISE"], "See 'errand watch --help'."],
  ] as const) {
    const { code, stderr } = await run([...argv]);
    expect(code).toBe(64);
    expect(stderr).toContain(said);
  }
});
