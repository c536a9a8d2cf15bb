/** Where the program of `errand work` works on a delegation. */
import { cwd } from "node:process";
import type { Work } from "../../client/work.ts";
import type { CommandFiles } from "./command-files.ts";
import type { Session } from "./presets/sessions.ts";

export interface Workspace {
  readonly folder: string;
  /** The folder is a git worktree of the conversation, which shows what changed: see worktree/worktrees.ts. */
  readonly isWorktree: boolean;
}

/** What an agent works on, where, and with which conversation and files. */
export interface Assignment {
  readonly task: Work;
  readonly workspace: Workspace;
  readonly session: Session;
  readonly files: CommandFiles;
}

/** The folder in which the worker was started. */
export const here = (): Workspace => ({ folder: cwd(), isWorktree: false });
