/**
 * One worktree as git knows it. Its git directory comes from the repository and not from the worktree, in which an agent may
 * have put another repository, whose settings would name programs to run.
 */
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Git, RunOptions } from "./git.ts";

/** What git keeps of an operation that is under way, and of submodules. */
const NEEDED = [
  "MERGE_HEAD",
  "CHERRY_PICK_HEAD",
  "REVERT_HEAD",
  "BISECT_LOG",
  "rebase-merge",
  "rebase-apply",
  "modules",
];

export class Tree {
  readonly path: string;
  readonly branch: string;
  readonly #git: Git;
  readonly #gitDir: string;

  private constructor(git: Git, path: string, branch: string, gitDir: string) {
    this.#git = git;
    this.path = path;
    this.branch = branch;
    this.#gitDir = gitDir;
  }

  /** Undefined if the repository has no worktree there. `repository` is its common git directory. */
  static async at(git: Git, repository: string, path: string, branch: string): Promise<Tree | undefined> {
    const folder = join(repository, "worktrees");
    for (const name of await readdir(folder).catch(() => [])) {
      const gitDir = join(folder, name);
      const file = await readFile(join(gitDir, "gitdir"), "utf8").catch(() => "");
      if (file.trim() === join(path, ".git")) return new Tree(git, path, branch, gitDir);
    }
    return undefined;
  }

  /** Its own index, in its git directory. */
  get index(): string {
    return join(this.#gitDir, "index");
  }

  bytes(args: readonly string[], options?: RunOptions): Promise<Buffer> {
    return this.#git.bytes(this.path, [...this.#where(), ...args], options);
  }

  text(args: readonly string[], options?: RunOptions): Promise<string> {
    return this.#git.text(this.path, [...this.#where(), ...args], options);
  }

  maybe(args: readonly string[], options?: RunOptions): Promise<string | undefined> {
    return this.#git.maybe(this.path, [...this.#where(), ...args], options);
  }

  /** Whether nothing would be lost with it. `others`: the paths of the repository's worktrees. */
  async isRemovable(others: readonly string[]): Promise<boolean> {
    const link = await readFile(join(this.path, ".git"), "utf8").catch(() => "");
    // Another repository may be in its place.
    if (link.trim() !== `gitdir: ${this.#gitDir}`) return false;
    if (NEEDED.some((name) => existsSync(join(this.#gitDir, name)))) return false;
    if (others.some((path) => path.startsWith(`${this.path}/`))) return false;
    // Commits on another branch, or on none, are the agent's work: it continues there.
    if ((await this.maybe(["symbolic-ref", "--quiet", "HEAD"])) !== `refs/heads/${this.branch}`) return false;
    const status = ["status", "--porcelain", "--untracked-files=normal", "--ignore-submodules=dirty"];
    if ((await this.text(status)) !== "") return false;
    // `git status` passes over files that are marked as unchanged.
    const marked = (await this.text(["ls-files", "-v", "-z"]))
      .split("\0")
      .filter((one) => /^[a-zS] /.test(one));
    return !marked.some((one) => existsSync(join(this.path, one.slice(2))));
  }

  #where(): string[] {
    const settings = ["core.fsmonitor=false", "core.hooksPath=/dev/null"].flatMap((one) => ["-c", one]);
    return [...settings, `--git-dir=${this.#gitDir}`, `--work-tree=${this.path}`];
  }
}
