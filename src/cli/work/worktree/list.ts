/** The worktrees of a repository. */
import type { Git } from "./git.ts";

export interface FoundWorktree {
  readonly path: string;
  /** Its folder is there, and git was not stopped while it made it. */
  readonly isWhole: boolean;
}

export async function listWorktrees(git: Git, root: string): Promise<FoundWorktree[]> {
  const printed = await git.text(root, ["worktree", "list", "--porcelain"]);
  return printed.split("\n\n").flatMap((entry) => {
    const lines = entry.split("\n");
    const path = lines.find((line) => line.startsWith("worktree "))?.slice("worktree ".length);
    const isBroken = lines.some((line) => line.startsWith("prunable") || line === "locked initializing");
    return path === undefined ? [] : [{ path, isWhole: !isBroken }];
  });
}
