/**
 * The checks of `errand doctor --preset`: the program, its version and its sign-in. Limit: it calls no provider, so it
 * cannot tell whether a key is valid, or whether a program keeps one elsewhere.
 */
import { execFile } from "node:child_process";
import { access } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { CliHost } from "../host.ts";
import { oneLine } from "../show/output.ts";
import { sharedEnv } from "../work/command-env.ts";
import { findCommand } from "../work/find-command.ts";
import {
  installText,
  type Package,
  PROGRAMS,
  type PresetName,
  type Program,
  type SignIn,
} from "../work/presets/programs.ts";
import type { Check } from "./check.ts";

/** Some take 10 s on a busy machine. */
const VERSION_MS = 60_000;

export async function* presetChecks({ childEnv }: Pick<CliHost, "childEnv">, preset: PresetName) {
  const program: Program = PROGRAMS[preset];
  const { headless, acp, signIn } = program;
  const { name } = headless;
  yield await installed("program", name, headless.program, program.package, childEnv, signIn);
  yield* acp?.adapter ? [await adapterCheck(name, acp.command[0], acp.adapter, childEnv, signIn)] : [];
  yield await signInCheck(name, childEnv, signIn);
}

type Env = CliHost["childEnv"];

async function installed(
  check: "program" | "adapter",
  name: string,
  command: string,
  pack: Package,
  env: Env,
  signIn: SignIn,
): Promise<Check> {
  const path = await findCommand(command, env.PATH);
  if (path === undefined) {
    const detail = `'${command}' was not found`;
    return { check, status: "fail", detail, remedy: installText(name, pack, signIn), category: "CONFIG" };
  }
  const version = await versionOf(path, env);
  const remedy = `Install the version that was tested: npm install -g ${pack.name}@${pack.tested}`;
  if (version === undefined)
    return { check, status: "warn", detail: `${path} does not tell its version`, remedy };
  const detail = `${name} ${version}, ${path}`;
  if (version === pack.tested) return { check, status: "ok", detail: `${detail}; this version was tested` };
  const tested = `${detail}; ${pack.tested} was tested`;
  return isOlder(version, pack.tested)
    ? { check, status: "warn", detail: tested, remedy }
    : { check, status: "ok", detail: tested };
}

async function adapterCheck(name: string, command: string, adapter: Package, env: Env, signIn: SignIn) {
  const check = await installed("adapter", command, command, adapter, env, signIn);
  if (check.status !== "fail") return check;
  return {
    check: "adapter",
    status: "warn",
    detail: `${check.detail}: without it, ${name} runs headless, and nobody can be asked`,
    remedy: `To be asked, run 'npm install -g ${adapter.name}'.`,
  } satisfies Check;
}

async function signInCheck(name: string, env: Env, { variables, files, how }: SignIn): Promise<Check> {
  const check = "sign_in";
  const set = variables.find((variable) => env[variable]);
  if (set !== undefined)
    return { check, status: "ok", detail: `${set} is set; only a run shows whether it is valid` };
  const home = env.HOME || homedir();
  const places = files.map(({ folder, movedBy, name: file }) =>
    join((movedBy && env[movedBy]) || join(home, folder), file),
  );
  for (const place of places) {
    const isThere = await access(place).then(
      () => true,
      () => false,
    );
    if (isThere)
      return { check, status: "ok", detail: `${place} is there; only a run shows whether it is valid` };
  }
  const missing = places.length === 0 ? "" : `, and there is no ${places.join(" or ")}`;
  return {
    check,
    status: "warn",
    detail: `cannot tell: none of ${variables.join(", ")} is set${missing}; ${name} may keep a key elsewhere`,
    remedy: `If nobody has signed in: ${how}.`,
  };
}

async function versionOf(path: string, env: Env): Promise<string | undefined> {
  try {
    const { stdout } = await promisify(execFile)(path, ["--version"], {
      env: sharedEnv({ inherited: env, url: undefined }),
      timeout: VERSION_MS,
    });
    return oneLine(stdout)
      .split(/[\s(),;]/)
      .map((word) => word.replace(/^v/, "").replace(/\.$/, ""))
      .find((word) => /^\d+\.\d+\.\d/.test(word));
  } catch {
    return undefined;
  }
}

function isOlder(version: string, other: string): boolean {
  const parts = (text: string) => text.split(/[.-]/).slice(0, 3).map(Number);
  const [own, its] = [parts(version), parts(other)];
  const at = own.findIndex((part, index) => part !== its[index]);
  return at >= 0 && (own[at] ?? 0) < (its[at] ?? 0);
}
