/** The worktrees of a repository. */
import type { Git } from "./git.ts";

export interface FoundWorktree {
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
