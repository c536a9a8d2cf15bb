/**
 * One git worktree for each conversation of `errand work --worktree`, so that conversations do not meet in one folder. It
 * has a branch of its own, and both are named by a hash. What is uncommitted stays: only a worktree without it is removed,
 * and its branch only if it has no commits that are nowhere else.
 */
import { createHash } from "node:crypto";
import { mkdir, realpath } from "node:fs/promises";
import { join } from "node:path";
import { QuestionOutcome } from "../../../client/questions.ts";
import { WorkerUnavailableError } from "../../../client/unavailable.ts";
import type { Outcome, Work } from "../../../client/work.ts";
import { ParkedError } from "../../../lease-holder/lost.ts";
import { oneLine } from "../../show/output.ts";
import { InTurn } from "../in-turn.ts";
import type { Place } from "../place.ts";
import { sendDiff, type Tree } from "./changes.ts";
import { type Git, GitError } from "./git.ts";
import { InUse } from "./in-use.ts";
import { listWorktrees } from "./list.ts";

export interface WorktreeSetup {
  readonly git: Git;
  /** Where the worker was started: a folder of a git repository. */
  readonly folder: string;
  /** The folder for the worktrees. */
  readonly home: string;
  /** Prints a line for the person who runs the worker. */
  readonly warn: (text: string) => void;
}

export class Worktrees {
  readonly #git: Git;
  readonly #root: string;
  readonly #repository: string;
  /** The worker's folder within the repository. */
  readonly #prefix: string;
  readonly #home: string;
  readonly #warn: (text: string) => void;
  readonly #inUse: InUse;
  readonly #inTurn = new InTurn();

  /** Throws a {@link GitError} if the folder is not in a git repository with a commit. Removes what nobody needs. */
  static async open({ git, folder, home, warn }: WorktreeSetup): Promise<Worktrees> {
    const show = (...args: string[]) => git.text(folder, ["rev-parse", ...args]);
    const root = await show("--show-toplevel");
    if ((await git.maybe(root, ["rev-parse", "--verify", "HEAD"])) === undefined)
      throw new GitError("the repository has no commit yet");
    await mkdir(home, { recursive: true, mode: 0o700 });
    const repository = await realpath(await show("--path-format=absolute", "--git-common-dir"));
    const found = { root, repository, prefix: await show("--show-prefix"), home: await realpath(home) };
    const worktrees = new Worktrees(git, warn, found);
    await worktrees.#removeUnused();
    return worktrees;
  }

  private constructor(
    git: Git,
    warn: (text: string) => void,
    found: Readonly<Record<"root" | "repository" | "prefix" | "home", string>>,
  ) {
    this.#git = git;
    this.#warn = warn;
    this.#root = found.root;
    this.#repository = found.repository;
    this.#prefix = found.prefix;
    this.#home = found.home;
    this.#inUse = new InUse(found.home);
  }

  /** Runs `work` in the worktree of the task's conversation, and sends what changed before its outcome. */
  async use(task: Work, work: (place: Place) => Promise<Outcome>): Promise<Outcome> {
    const name = this.#nameFor(task);
    return this.#inTurn.use(name, task.signal, async () => {
      const end = await this.#inUse.begin(name, task.signal).catch((error: unknown) => {
        task.signal.throwIfAborted();
        throw this.#unavailable(error);
      });
      let isNeeded = false;
      try {
        const tree = await this.#open(name, task.signal);
        const outcome = await work({ folder: await this.#folderIn(tree), isWorktree: true });
        isNeeded = outcome instanceof QuestionOutcome;
        if (!isNeeded) await this.#sendDiff(tree, task);
        return outcome;
      } catch (error) {
        isNeeded = error instanceof ParkedError;
        throw error;
      } finally {
        if (!isNeeded) await this.#removeIfUnused(name, 1);
        await end();
      }
    });
  }

  #nameFor({ delegation: { target, delegator, context_id } }: Work): string {
    const key = JSON.stringify([this.#repository, target, delegator, context_id]);
    return createHash("sha256").update(key).digest("hex").slice(0, 20);
  }

  #treeOf(name: string): Tree {
    return { path: join(this.#home, name), branch: `errand/${name}` };
  }

  async #open(name: string, signal: AbortSignal): Promise<Tree> {
    const tree = this.#treeOf(name);
    const { path, branch } = tree;
    try {
      const found = (await listWorktrees(this.#git, this.#root)).find((one) => one.path === path);
      if (found?.isWhole) return tree;
      if (found) await this.#git.text(this.#root, ["worktree", "remove", "--force", "--force", path]);
      const isThere = (await this.#tipOf(branch)) !== undefined;
      const what = isThere ? [path, branch] : ["-b", branch, path, "HEAD"];
      await this.#git.text(this.#root, ["worktree", "add", "--quiet", ...what], { signal });
      return tree;
    } catch (error) {
      signal.throwIfAborted();
      throw this.#unavailable(error);
    }
  }

  async #folderIn({ path }: Tree): Promise<string> {
    const folder = join(path, this.#prefix);
    // The repository may not have it.
    await mkdir(folder, { recursive: true }).catch((error: unknown) => {
      throw this.#unavailable(error);
    });
    return folder;
  }

  async #sendDiff(tree: Tree, task: Work): Promise<void> {
    try {
      const why = await sendDiff(this.#git, this.#root, tree, task.artifact);
      if (why === undefined) return;
      task.progress({ message: why });
      this.#warn(`${task.delegation.id}: ${why}`);
    } catch (error) {
      if (!(error instanceof GitError)) throw error;
      this.#warn(`${task.delegation.id}: what changed in ${tree.path} cannot be returned: ${error.message}`);
    }
  }

  /** The work is returned: it may succeed when the worktree can be made. Only the worker's log says what git says. */
  #unavailable(error: unknown): WorkerUnavailableError {
    const what = "cannot make the worktree of a conversation";
    this.#warn(`${what}: ${oneLine(error instanceof Error ? error.message : String(error))}`);
    return new WorkerUnavailableError(what, { cause: error });
  }

  /** What killed workers left. */
  async #removeUnused(): Promise<void> {
    for (const { path } of await listWorktrees(this.#git, this.#root)) {
      const name = path.slice(this.#home.length + 1);
      if (path === join(this.#home, name) && /^[0-9a-f]{20}$/.test(name)) await this.#removeIfUnused(name, 0);
    }
  }

  /** A worktree that cannot be removed does no harm, and is reported. */
  async #removeIfUnused(name: string, mine: number): Promise<void> {
    try {
      await this.#inUse.whileUnused(name, mine, () => this.#removeIfClean(this.#treeOf(name)));
    } catch (error) {
      this.#warn(`cannot remove the worktree ${join(this.#home, name)}: ${oneLine(String(error))}`);
    }
  }

  async #removeIfClean({ path, branch }: Tree): Promise<void> {
    const found = (await listWorktrees(this.#git, this.#root)).find((one) => one.path === path);
    if (found === undefined) return;
    if (found.isWhole) {
      const [top, repository] = await Promise.all([
        this.#git.maybe(path, ["rev-parse", "--show-toplevel"]),
        this.#git.maybe(path, ["rev-parse", "--path-format=absolute", "--git-common-dir"]),
      ]);
      // An agent may have put another repository there.
      if (top !== path || repository !== this.#repository) return;
      const status = ["status", "--porcelain", "--untracked-files=normal", "--ignore-submodules=none"];
      if ((await this.#git.text(path, status)) !== "") return;
      const head = await this.#git.text(path, ["rev-parse", "HEAD"]);
      if (!(await this.#isKept(head))) return;
      await this.#git.text(this.#root, ["worktree", "remove", path]);
    } else await this.#git.text(this.#root, ["worktree", "remove", "--force", "--force", path]);
    const tip = await this.#tipOf(branch);
    // With the tip, so that a branch that has moved meanwhile stays.
    if (tip !== undefined && (await this.#isKept(tip, branch)))
      await this.#git.maybe(this.#root, ["update-ref", "-d", `refs/heads/${branch}`, tip]);
  }

  #tipOf(branch: string): Promise<string | undefined> {
    return this.#git.maybe(this.#root, ["rev-parse", "--verify", "--quiet", `refs/heads/${branch}`]);
  }

  /** Whether a branch has the commit, besides this one; or what is checked out in the worker's folder. */
  async #isKept(commit: string, besides?: string): Promise<boolean> {
    const isAncestor = ["merge-base", "--is-ancestor", commit, "HEAD"];
    if ((await this.#git.maybe(this.#root, isAncestor)) !== undefined) return true;
    const args = ["for-each-ref", "--contains", commit, "--count=2", "--format=%(refname)"];
    const refs = (await this.#git.text(this.#root, [...args, "refs/heads", "refs/remotes"])).split("\n");
    return refs.some((ref) => ref !== "" && ref !== `refs/heads/${besides}`);
  }
}
