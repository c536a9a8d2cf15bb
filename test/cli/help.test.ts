/** Every command's help is complete, and equal to docs/cli.md. */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { buildProgram, everyCommand, pathOf } from "../../src/cli/program.ts";
import { host, run } from "./fake-host.ts";

const program = buildProgram({ host: host(), end: () => undefined });
const page = readFileSync(new URL("../../docs/cli.md", import.meta.url), "utf8");
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
      // The page wraps lines elsewhere.
      expect(flat(page)).toContain(flat(stdout).trim());
    });
  },
);

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
