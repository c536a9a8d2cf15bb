/** What changed in a worktree since it left the branch of the worker's folder, as one diff among the artifacts. */
import { copyFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { isFull, isInvalid } from "../../../client/errors.ts";
import type { Work } from "../../../client/work.ts";
import { isText } from "../../is-text.ts";
import { sendBytes } from "../returned-files.ts";
import { makeFolder, removeFolder } from "../temp-folder.ts";
import { type Git, TooMuchOutputError } from "./git.ts";

/** As text up to this size, so that it is shown where it is received. */
const TEXT_MAX = 64 * 1024;
const DIFF_MAX = 2 * 1024 * 1024;
const MEDIA_TYPE = "text/x-diff";
const NAME = "changes.diff";

export interface Tree {
  readonly path: string;
  readonly branch: string;
}

/** Returns why the diff is not among the artifacts, if it is not. Rejects when the lease is lost. */
export async function sendDiff(
  git: Git,
  root: string,
  tree: Tree,
  send: Work["artifact"],
): Promise<string | undefined> {
  const base = await git.text(tree.path, ["merge-base", await git.text(root, ["rev-parse", "HEAD"]), "HEAD"]);
  const diff = await diffSince(git, tree.path, base);
  if (diff === undefined) return tooLarge(tree);
  if (diff.length === 0) return undefined;
  const description = `What changed since commit ${base.slice(0, 12)}. The worker keeps it on the branch ${tree.branch}.`;
  const artifact = { artifactId: "diff", name: NAME, description };
  try {
    if (diff.length <= TEXT_MAX && isText(diff))
      await send({ ...artifact, parts: [{ text: diff.toString(), mediaType: MEDIA_TYPE, filename: NAME }] });
    else await sendBytes(artifact, MEDIA_TYPE, diff, send);
  } catch (error) {
    // The answer is worth more than the diff.
    if (isFull(error) || isInvalid(error)) return tooLarge(tree);
    throw error;
  }
  return undefined;
}

/** Undefined if it is too large. Files that git ignores are not in it. */
async function diffSince(git: Git, path: string, base: string): Promise<Buffer | undefined> {
  const folder = await makeFolder();
  try {
    // New files are listed in a copy of the index: the agent's own stays as it is.
    const indexFile = join(folder, "index");
    const index = await git.text(path, ["rev-parse", "--git-path", "index"]);
    await copyFile(resolve(path, index), indexFile);
    await git.text(path, ["add", "--intent-to-add", "--", "."], { indexFile });
    const diff = (args: readonly string[]) =>
      git
        .bytes(path, ["diff", ...args, "--no-ext-diff", "--no-textconv", "--no-color", base, "--"], {
          indexFile,
          mostBytes: DIFF_MAX,
        })
        .catch((error: unknown) => {
          if (error instanceof TooMuchOutputError) return undefined;
          throw error;
        });
    return (await diff(["--binary"])) ?? (await diff([]));
  } finally {
    await removeFolder(folder);
  }
}

const tooLarge = ({ branch }: Tree): string =>
  `The diff is too large to be returned; the worker keeps the changes in the worktree of the branch ${branch}.`;
