/** Runs git in a repository, without the variables by which a hook or a caller names another one. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { oneLine } from "../../show/output.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** They name a repository, or a part of one. */
const OF_A_REPOSITORY = [
  ...["GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_IMPLICIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"],
  ...["GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_GRAFT_FILE", "GIT_SHALLOW_FILE"],
  ...["GIT_NAMESPACE", "GIT_REPLACE_REF_BASE"],
];

/** An agent in a worktree would work on the repository that such a variable names. */
export const withoutRepository = (env: Env): Env =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !OF_A_REPOSITORY.includes(name)));

export class GitError extends Error {
  override readonly name = "GitError";
}

/** git printed more than was asked for, and was stopped. */
export class TooMuchOutputError extends Error {
  override readonly name = "TooMuchOutputError";
}

export interface RunOptions {
  readonly signal?: AbortSignal;
  readonly indexFile?: string;
  readonly mostBytes?: number;
}

const MOST_BYTES = 16 * 1024 * 1024;

export class Git {
  readonly #env: Env;

  constructor(env: Env) {
    this.#env = { ...withoutRepository(env), LC_ALL: "C", GIT_TERMINAL_PROMPT: "0" };
  }

  /** Its stdout. Throws a {@link GitError} with its stderr if it fails. */
  async bytes(folder: string, args: readonly string[], options: RunOptions = {}): Promise<Buffer> {
    const { signal, indexFile, mostBytes = MOST_BYTES } = options;
    const env = { ...this.#env, ...(indexFile !== undefined && { GIT_INDEX_FILE: indexFile }) };
    const given = { cwd: folder, env, signal, maxBuffer: mostBytes, encoding: "buffer" as const };
    try {
      const { stdout } = await promisify(execFile)("git", [...args], given);
      return stdout;
    } catch (error) {
      signal?.throwIfAborted();
      throw asGitError(args, error);
    }
  }

  async text(folder: string, args: readonly string[], options?: RunOptions): Promise<string> {
    return (await this.bytes(folder, args, options)).toString().replace(/\n$/, "");
  }

  /** The commit that a ref names; undefined if there is no such ref. */
  commitOf(folder: string, ref: string): Promise<string | undefined> {
    return this.maybe(folder, ["rev-parse", "--verify", "--quiet", ref]);
  }

  /** Undefined if it fails. */
  async maybe(folder: string, args: readonly string[], options?: RunOptions): Promise<string | undefined> {
    return this.text(folder, args, options).catch((error: unknown) => {
      if (error instanceof GitError) return undefined;
      throw error;
    });
  }
}

function asGitError(args: readonly string[], error: unknown): Error {
  if (!(error instanceof Error)) return new GitError(String(error));
  const code = "code" in error ? error.code : undefined;
  if (code === "ERR_CHILD_PROCESS_STDIO_MAXBUFFER") return new TooMuchOutputError(args.join(" "));
  const printed = "stderr" in error ? String(error.stderr).trim() : "";
  const why = code === "ENOENT" ? "git cannot be started (ENOENT)" : printed || error.message;
  return new GitError(oneLine(why), { cause: error });
}

/** The worktrees of a repository. */
interface FoundWorktree {
  readonly path: string;
  /** `half-made`: git was stopped while it made it. `gone`: the folder, or its link to the repository, is missing. */
  readonly state: "whole" | "half-made" | "gone";
}

export async function listWorktrees(git: Git, root: string): Promise<FoundWorktree[]> {
  const printed = await git.text(root, ["worktree", "list", "--porcelain"]);
  return printed.split("\n\n").flatMap((entry) => {
    const lines = entry.split("\n");
    const path = lines.find((line) => line.startsWith("worktree "))?.slice("worktree ".length);
    return path === undefined ? [] : [{ path, state: stateOf(lines) }];
  });
}

function stateOf(lines: readonly string[]): FoundWorktree["state"] {
  if (lines.includes("locked initializing")) return "half-made";
  return lines.some((line) => line.startsWith("prunable")) ? "gone" : "whole";
}
