/** `errand doctor --preset`, with small programs that print a version. */
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Check, checkSchema } from "../../../src/cli/doctor/check.ts";
import { presetChecks } from "../../../src/cli/doctor/preset.ts";
import { PROGRAMS, type PresetName } from "../../../src/cli/work/presets/programs.ts";
import { freshDir } from "../../support/program.ts";
import { lines } from "../broker/cli.ts";
import { run } from "../fake-host.ts";

/** Programs, each with what it prints for `--version`. */
function place(programs: Readonly<Record<string, string>>) {
  const dir = freshDir();
  for (const [name, says] of Object.entries(programs)) {
    writeFileSync(join(dir, name), `#!/bin/sh\necho "${says}"\n`);
    chmodSync(join(dir, name), 0o755);
  }
  return { dir, env: { PATH: `${dir}:/usr/bin:/bin`, HOME: dir } };
}

async function checked(preset: PresetName, childEnv: Readonly<Record<string, string>>) {
  const checks: Check[] = [];
  for await (const check of presetChecks({ childEnv }, preset)) checks.push(checkSchema.parse(check));
  return Object.fromEntries(checks.map((check) => [check.check, check]));
}

const { tested } = PROGRAMS.codex.package;
const ADAPTER = PROGRAMS.codex.acp.adapter.tested;

test("a tested version, its adapter and a sign-in are ok", async () => {
  const { dir, env } = place({ codex: `codex-cli ${tested}`, "codex-acp": `codex-acp ${ADAPTER}` });
  mkdirSync(join(dir, "own"));
  writeFileSync(join(dir, "own", "auth.json"), "{}");
  const checks = await checked("codex", { ...env, CODEX_HOME: join(dir, "own") });
  expect(checks.program).toMatchObject({
    status: "ok",
    detail: `Codex ${tested}, ${dir}/codex; this version was tested`,
  });
  expect(checks.adapter?.status).toBe("ok");
  expect(checks.sign_in).toMatchObject({
    status: "ok",
    detail: expect.stringContaining("own/auth.json is there"),
  });
});

test("a newer version is ok and an older one a warning; both name the one that was tested", async () => {
  const newer = await checked("gemini", place({ gemini: "99.0.0" }).env);
  expect(newer.program).toMatchObject({
    status: "ok",
    detail: expect.stringMatching(/0\.61\.0 was tested$/),
  });
  const older = await checked("gemini", place({ gemini: "0.9.0" }).env);
  expect(older.program).toMatchObject({
    status: "warn",
    remedy: expect.stringContaining("npm install -g @google/gemini-cli@"),
  });
  const silent = await checked("gemini", place({ gemini: "hello" }).env);
  expect(silent.program).toMatchObject({ status: "warn", detail: expect.stringContaining("does not tell") });
});

test("a key in the environment is a sign-in; without one, the check cannot tell", async () => {
  const { env } = place({ gemini: "0.61.0" });
  expect((await checked("gemini", { ...env, GEMINI_API_KEY: "hush" })).sign_in).toMatchObject({
    status: "ok",
    detail: expect.stringMatching(/^GEMINI_API_KEY is set/),
  });
  const checks = await checked("gemini", env);
  expect(checks.sign_in).toMatchObject({
    status: "warn",
    detail: expect.stringMatching(/^cannot tell: /),
    remedy: expect.stringContaining("run 'gemini' and then /auth"),
  });
  expect(JSON.stringify(checks)).not.toContain("hush");
});

test("a missing adapter is a warning, a missing program sets the exit code", async () => {
  const { env } = place({ codex: "1.0.0" });
  expect((await checked("codex", env)).adapter).toMatchObject({
    status: "warn",
    remedy: expect.stringContaining("npm install -g @agentclientprotocol/codex-acp"),
  });
  const { code, stdout } = await run(["doctor", "--preset", "opencode", "--json"], {
    childEnv: place({}).env,
  });
  expect(code).toBe(78);
  const [program] = lines(checkSchema, stdout);
  expect(program).toMatchObject({ check: "program", status: "fail", category: "CONFIG" });
  expect(program?.remedy).toContain("npm install -g opencode-ai");
});
