/** A program for `errand work --preset`: how to start it, and how to read its output. */
import type * as z from "zod";
import type { UsageReport } from "../../../schema/usage.ts";
import type { Facts } from "./classify.ts";

export interface Preset {
  readonly program: string;
  /** Its name, for people. */
  readonly name: string;
  /** The program's arguments. The task is on stdin. `folders` are those that it may use besides its own. */
  readonly args: (
    session: string | undefined,
    extra: readonly string[],
    folders: readonly string[],
  ) => readonly string[];
  /** Reads one JSON line of stdout. Returns an empty result for an unknown event. */
  readonly read: (event: unknown) => Seen;
  /** Undefined: it takes no schema. */
  readonly result?: ResultBySchema;
  /** Reads one line of stderr. */
  readonly readStderr?: (line: string) => Seen;
}

/** How a program takes the schema of its result. */
export interface ResultBySchema {
  /** Whether it takes this one; otherwise its prompt has it. */
  readonly takes: (schema: unknown) => boolean;
  /** Its arguments; `file` has the schema. */
  readonly args: (schema: unknown, file: string) => readonly string[];
  /** It hands the result over apart from its answer. */
  readonly isSeparate?: true;
}

/** What one line shows. Later facts replace earlier ones, but what was refused is collected. */
export interface Seen extends Partial<Omit<Facts, "name">> {
  /** The id with which a later run continues the conversation. */
  readonly session?: string | undefined;
  readonly progress?: string | undefined;
  /** What the run has used so far. */
  readonly usage?: UsageReport | undefined;
  /** What the conversation has used so far. */
  readonly conversationUsage?: UsageReport | undefined;
  /** A piece of the answer, after those before it. */
  readonly answerMore?: string | undefined;
}

/** Undefined or null if it is not there; undefined if it is something else. */
export const absent = <T extends z.ZodType>(schema: T) => schema.nullish().catch(undefined);

/** Characters of a tool call as progress or in an error. */
export const TOOL_MAX = 200;
