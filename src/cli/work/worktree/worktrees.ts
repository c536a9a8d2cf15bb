/**
 * One git worktree for each conversation of `errand work --worktree`, so that conversations do not meet in one folder. It
 * has a branch of its own, and both are named by a hash. A worktree is removed only if nothing would be lost with it, and its
 * branch only if another branch has its commits.
 */
import { existsSync } from "node:fs";
import { mkdir, readdir, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { QuestionOutcome } from "../../../client/questions.ts";
import { WorkerUnavailableError } from "../../../client/unavailable.ts";
import type { Outcome, Work } from "../../../client/work.ts";
import { ParkedError } from "../../../lease-holder/lost.ts";
import { sleep } from "../../../util/timing.ts";
import { hashOf } from "../../kept-text.ts";
import { oneLine } from "../../show/output.ts";
import { failed } from "../failed-reply.ts";
import { InTurn } from "../in-turn.ts";
import { removeFolder } from "../temp-folder.ts";
import type { Workspace } from "../workspace.ts";
import { sendDiff } from "./changes.ts";
import { Claims } from "./claims.ts";
import { type Git, GitError, listWorktrees } from "./git.ts";
import { Tree } from "./tree.ts";

/** A worktree waits so long at most for the answer to a question. */
const ASKED_MS = 31 * 24 * 60 * 60 * 1000;
/** How often a worktree is tried to be made, and the first pause. */
const MAX_TRIES = 5;
const PAUSE_MS = 50;

export interface WorktreeSetup {
  readonly git: Git;
  /** Where the worker was started: a folder of a git repository. */
  readonly folder: string;
  /** The folder for the worktrees. */
  readonly home: string;
  /** The broker's URL: conversations of different brokers are different ones. */
  readonly broker: string;
  /** Prints a line for the person who runs the worker. */
  readonly warn: (text: string) => void;
}

/** This conversation cannot have its worktree; others are not affected. */
class TreeError extends Error {
  override readonly name = "TreeError";
}

interface Repository {
  /** The top of the worker's own checkout. */
  readonly root: string;
  /** The git directory that all worktrees share. */
  readonly gitDir: string;
  /** The worker's folder below the top. */
  readonly prefix: string;
  readonly home: string;
}

export class Worktrees {
  readonly #setup: WorktreeSetup;
  readonly #git: Git;
  readonly #repository: Repository;
  readonly #claims: Claims;
  readonly #inTurn = new InTurn();

  /** Throws a {@link GitError} if the folder is not in a git repository with a commit. Removes what nobody needs. */
  static async open(setup: WorktreeSetup): Promise<Worktrees> {
    const { git, folder, home } = setup;
    const show = (...args: string[]) => git.text(folder, ["rev-parse", ...args]);
    const root = await show("--show-toplevel");
    if ((await git.commitOf(root, "HEAD")) === undefined)
      throw new GitError("the repository has no commit yet");
    if ((await git.commitOf(root, "refs/heads/errand")) !== undefined)
      throw new GitError("the branch 'errand' is in the way of branches 'errand/…'");
    await mkdir(home, { recursive: true, mode: 0o700 }).catch((error: unknown) => {
      throw new GitError(`the folder ${home} cannot be made: ${oneLine(String(error))}; see XDG_STATE_HOME`);
    });
    const gitDir = await realpath(await show("--path-format=absolute", "--git-common-dir"));
    const prefix = await show("--show-prefix");
    const worktrees = new Worktrees(setup, { root, gitDir, prefix, home: await realpath(home) });
    await worktrees.#removeUnused();
    return worktrees;
  }

  private constructor(setup: WorktreeSetup, repository: Repository) {
    this.#setup = setup;
    this.#git = setup.git;
    this.#repository = repository;
    this.#claims = new Claims(repository.home);
  }

  /** Runs `work` in the worktree of the task's conversation, and sends what changed before its outcome. */
  async use(task: Work, work: (workspace: Workspace) => Promise<Outcome>): Promise<Outcome> {
    const name = this.#nameFor(task);
    const { id } = task.delegation;
    return this.#inTurn.use(name, task.signal, async () => {
      const onWait = () =>
        task.progress({ message: "Another worker uses the worktree of this conversation." });
      const end = await this.#claims.claim(name, task.signal, onWait).catch((error: unknown) => {
        task.signal.throwIfAborted();
        throw this.#unavailable(error);
      });
      try {
        await this.#noteAsked(name, id, false);
        const tree = await this.#open(name, task.signal);
        const outcome = await work({ folder: await this.#folderIn(tree), isWorktree: true });
        if (outcome instanceof QuestionOutcome) await this.#noteAsked(name, id, true);
        else await this.#sendDiff(tree, name, task);
        return outcome;
      } catch (error) {
        if (error instanceof ParkedError) await this.#noteAsked(name, id, true);
        if (!(error instanceof TreeError)) throw error;
        this.#setup.warn(`${id}: ${error.message}`);
        return failed("worktree_failed", error.message);
      } finally {
        await this.#removeIfUnneeded(name);
        await end();
      }
    });
  }

  #nameFor({ delegation: { target, delegator, context_id } }: Work): string {
    return hashOf([this.#repository.gitDir, this.#setup.broker, target, delegator, context_id]).slice(0, 20);
  }

  #pathOf(name: string): string {
    return join(this.#repository.home, name);
  }

  #treeAt(name: string): Promise<Tree | undefined> {
    return Tree.at(this.#git, this.#repository.gitDir, this.#pathOf(name), `errand/${name}`);
  }

  /** Where the branch began, or was merged last. */
  #startOf(name: string): string {
    return `refs/errand-start/${name}`;
  }

  async #open(name: string, signal: AbortSignal): Promise<Tree> {
    const { root } = this.#repository;
    const path = this.#pathOf(name);
    const found = (await listWorktrees(this.#git, root)).find((one) => one.path === path);
    if (found?.state === "half-made") await this.#unregister(path);
    if (found?.state !== "whole") await this.#make(name, path, signal);
    const tree = await this.#treeAt(name);
    if (tree === undefined) throw new TreeError("The worktree of this conversation cannot be found.");
    return tree;
  }

  /**
   * Git may fail while another process adds or removes a worktree of the same repository, because it removes the folder of
   * all of them with the last one: then it is tried again.
   */
  async #make(name: string, path: string, signal: AbortSignal): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#tryToMake(name, path, signal);
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof GitError)) throw this.#unavailable(error);
        if (tries < MAX_TRIES) {
          await sleep(PAUSE_MS * tries, signal);
          continue;
        }
        this.#setup.warn(`cannot make the worktree ${path}: ${error.message}`);
        throw new TreeError(`The worktree of this conversation cannot be made on the branch errand/${name}.`);
      }
    }
  }

  async #tryToMake(name: string, path: string, signal: AbortSignal): Promise<void> {
    const { root } = this.#repository;
    const branch = `errand/${name}`;
    // An agent may have removed the link to the repository, and left its work.
    if (existsSync(path)) {
      const aside = `${path}.kept-${Date.now()}`;
      await rename(path, aside);
      this.#setup.warn(`${path} is no worktree any more; it is now ${aside}`);
    }
    await this.#unregister(path);
    const tip = await this.#commitOf(`refs/heads/${branch}`);
    const head = await this.#git.text(root, ["rev-parse", "HEAD"]);
    const start = tip === undefined ? head : await this.#startFor(name, branch, tip);
    await this.#git.text(root, ["update-ref", this.#startOf(name), start]);
    const what = tip === undefined ? ["-b", branch, path, head] : [path, branch];
    await this.#git.text(root, ["worktree", "add", "--quiet", ...what], { signal });
  }

  /** If another branch has the commits, the tip, because merged work is no change. */
  async #startFor(name: string, branch: string, tip: string): Promise<string> {
    if (await this.#isKept(tip, branch)) return tip;
    const known = await this.#commitOf(this.#startOf(name));
    return known ?? (await this.#git.text(this.#repository.root, ["merge-base", "HEAD", tip]));
  }

  async #folderIn({ path }: Tree): Promise<string> {
    const folder = join(path, this.#repository.prefix);
    // The branch may not have it.
    await mkdir(folder, { recursive: true }).catch((error: unknown) => {
      this.#setup.warn(`cannot make ${folder}: ${oneLine(String(error))}`);
      throw new TreeError("The worktree of this conversation has no folder for the worker.");
    });
    return folder;
  }

  /** A diff that fails must not fail the delegation: only a lost lease throws. */
  async #sendDiff(tree: Tree, name: string, task: Work): Promise<void> {
    const say = (why: string, detail = why) => {
      task.progress({ message: why });
      this.#setup.warn(`${task.delegation.id}: ${detail}`);
    };
    try {
      const base = await this.#git.text(this.#repository.root, ["rev-parse", this.#startOf(name)]);
      const why = await sendDiff(tree, base, task);
      if (why !== undefined) say(why);
    } catch (error) {
      task.signal.throwIfAborted();
      const what = "What changed in the worktree cannot be returned";
      say(
        `${what}; the worker keeps it in the worktree of the branch ${tree.branch}.`,
        `${what}: ${oneLine(String(error))}`,
      );
    }
  }

  /** The delegation returns to the worktree after its answer. */
  async #noteAsked(name: string, id: string, isAsked: boolean): Promise<void> {
    const file = join(this.#repository.home, `${name}.asked.${id}`);
    await (isAsked ? writeFile(file, "") : rm(file, { force: true })).catch(() => undefined);
  }

  async #hasAsked(name: string): Promise<boolean> {
    const { home } = this.#repository;
    for (const file of (await readdir(home)).filter((one) => one.startsWith(`${name}.asked.`))) {
      const found = await stat(join(home, file)).catch(() => undefined);
      if (found && Date.now() - found.mtimeMs < ASKED_MS) return true;
      await rm(join(home, file), { force: true });
    }
    return false;
  }

  /** What killed workers left. */
  async #removeUnused(): Promise<void> {
    const { home, root } = this.#repository;
    for (const { path } of await listWorktrees(this.#git, root)) {
      const name = path.slice(home.length + 1);
      if (path !== this.#pathOf(name) || !/^[0-9a-f]{20}$/.test(name)) continue;
      const end = await this.#claims.tryClaim(name);
      if (end === undefined) continue;
      await this.#removeIfUnneeded(name);
      await end();
    }
  }

  /** A worktree that cannot be removed does no harm, and is reported. Call it with a claim. */
  async #removeIfUnneeded(name: string): Promise<void> {
    const path = this.#pathOf(name);
    try {
      if (await this.#hasAsked(name)) return;
      const all = await listWorktrees(this.#git, this.#repository.root);
      const found = all.find((one) => one.path === path);
      if (found?.state === "half-made" || (found?.state === "gone" && !existsSync(path)))
        await this.#unregister(path);
      else if (found !== undefined) {
        const tree = await this.#treeAt(name);
        if (!(await tree?.isRemovable(all.map((one) => one.path)))) return;
        await this.#remove(path);
      }
      await this.#removeBranch(name);
    } catch (error) {
      this.#setup.warn(`cannot remove the worktree ${path}: ${oneLine(String(error))}`);
    }
  }

  async #remove(path: string): Promise<void> {
    const { root } = this.#repository;
    try {
      await this.#git.text(root, ["worktree", "remove", path]);
    } catch (error) {
      // git has refused it.
      if ((await listWorktrees(this.#git, root)).some((one) => one.path === path)) throw error;
      // git knows it no more, and could not delete all of it: an ignored folder may be read-only.
      await removeFolder(path);
    }
  }

  /** What has no folder, or only what git had begun to write. */
  async #unregister(path: string): Promise<void> {
    await this.#git.maybe(this.#repository.root, ["worktree", "remove", "--force", "--force", path]);
  }

  async #removeBranch(name: string): Promise<void> {
    const { root } = this.#repository;
    const branch = `errand/${name}`;
    const tip = await this.#commitOf(`refs/heads/${branch}`);
    if (tip === undefined || !(await this.#isKept(tip, branch))) return;
    // With the tip, so that a branch that has moved meanwhile stays.
    await this.#git.maybe(root, ["update-ref", "-d", `refs/heads/${branch}`, tip]);
    await this.#git.maybe(root, ["update-ref", "-d", this.#startOf(name)]);
  }

  #commitOf(ref: string): Promise<string | undefined> {
    return this.#git.commitOf(this.#repository.root, ref);
  }

  /** Whether another branch has the commit. */
  async #isKept(commit: string, besides: string): Promise<boolean> {
    const args = ["for-each-ref", "--contains", commit, "--count=2", "--format=%(refname)"];
    const refs = (await this.#git.text(this.#repository.root, [...args, "refs/heads", "refs/remotes"])).split(
      "\n",
    );
    return refs.some((ref) => ref !== "" && ref !== `refs/heads/${besides}`);
  }

  /** The work is returned: it may succeed later. Only the worker's log has the reason. */
  #unavailable(error: unknown): WorkerUnavailableError {
    const what = "cannot make the worktree of a conversation";
    this.#setup.warn(`${what}: ${oneLine(error instanceof Error ? error.message : String(error))}`);
    return new WorkerUnavailableError(what, { cause: error });
  }
}
