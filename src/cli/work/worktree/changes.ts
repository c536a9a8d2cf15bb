/** What changed in a worktree since its branch began, as one diff among the artifacts. */
import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { isFull, isInvalid } from "../../../client/errors.ts";
import type { Work } from "../../../client/work.ts";
import { isText } from "../../is-text.ts";
import { oneLine } from "../../show/output.ts";
import { sendBytes } from "../returned-files.ts";
import { makeFolder, removeFolder } from "../temp-folder.ts";
import { TooMuchOutputError } from "./git.ts";
import type { Tree } from "./tree.ts";

/** As text up to this size, so that it is shown where it is received. */
const TEXT_MAX = 64 * 1024;
/** The delegation must also have room for its files and its answer. */
const DIFF_MAX = 1024 * 1024;
const NAMED_MAX = 10;
const MEDIA_TYPE = "text/x-diff";
const NAME = "changes.diff";

/** Whatever the user's settings say, `git apply` takes it. */
const PATCH = [
  ...["--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--submodule=short"],
  ...["--src-prefix=a/", "--dst-prefix=b/", "--ignore-submodules=dirty"],
];

/** Returns what of the changes is not among the artifacts, as a sentence, if anything. Rejects when the lease is lost. */
export async function sendDiff(
  tree: Tree,
  base: string,
  { artifact: send, signal }: Pick<Work, "artifact" | "signal">,
): Promise<string | undefined> {
  const { diff, leftOut } = await diffSince(tree, base, signal);
  const missing =
    leftOut.length === 0 ? undefined : `Binary files are too large to be returned: ${namesOf(leftOut)}.`;
  if (diff === undefined) return tooLarge(tree);
  if (diff.length === 0) return missing;
  const began = `What changed since commit ${base.slice(0, 12)}. The worker keeps it in the worktree of the branch ${tree.branch}.`;
  const artifact = {
    artifactId: "diff",
    name: NAME,
    description: [began, missing].filter(Boolean).join(" "),
  };
  const text = (words: string) =>
    send({ ...artifact, parts: [{ text: words, mediaType: MEDIA_TYPE, filename: NAME }] });
  try {
    if (diff.length <= TEXT_MAX && isText(diff)) await text(diff.toString());
    else await sendBytes(artifact, MEDIA_TYPE, diff, send);
  } catch (error) {
    if (!isFull(error) && !isInvalid(error)) throw error;
    // Nothing of it instead of a part. The answer is worth more than the diff.
    await send({ ...artifact, description: tooLarge(tree), parts: [{ text: "" }] }).catch(() => undefined);
    return tooLarge(tree);
  }
  return missing;
}

interface Found {
  /** Undefined if it is too large. Files that git ignores are not in it. */
  readonly diff: Buffer | undefined;
  /** The binary files that are not in it. */
  readonly leftOut: readonly string[];
}

async function diffSince(tree: Tree, base: string, signal: AbortSignal): Promise<Found> {
  const folder = await makeFolder();
  try {
    // New files are listed in a copy of the index: the agent's own stays as it is.
    const indexFile = join(folder, "index");
    await copyFile(tree.index, indexFile);
    await tree.text(["add", "--intent-to-add", "--", "."], { indexFile, signal });
    const diff = (args: readonly string[], paths: readonly string[]) =>
      tree
        .bytes(["diff", ...args, ...PATCH, base, "--", ...paths], { indexFile, signal, mostBytes: DIFF_MAX })
        .catch((error: unknown) => {
          if (error instanceof TooMuchOutputError) return undefined;
          throw error;
        });
    const whole = await diff(["--binary"], []);
    if (whole !== undefined) return { diff: whole, leftOut: [] };
    const counts = (await diff(["--numstat", "-z"], []))?.toString() ?? "";
    const leftOut = counts.split("\0").flatMap((one) => (one.startsWith("-\t-\t") ? [one.slice(4)] : []));
    return {
      diff: await diff([], [".", ...leftOut.map((path) => `:(top,exclude,literal)${path}`)]),
      leftOut,
    };
  } finally {
    await removeFolder(folder);
  }
}

const namesOf = (paths: readonly string[]): string =>
  [
    ...paths.slice(0, NAMED_MAX).map((path) => oneLine(path)),
    ...(paths.length > NAMED_MAX ? ["…"] : []),
  ].join(", ");

const tooLarge = ({ branch }: Tree): string =>
  `The diff is too large to be returned; the worker keeps the changes in the worktree of the branch ${branch}.`;
