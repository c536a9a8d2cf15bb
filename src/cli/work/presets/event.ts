/** For the schemas of programs' events, which differ from version to version. */
import type * as z from "zod";

/** Undefined or null if it is not there; undefined if it is something else. */
export const absent = <T extends z.ZodType>(schema: T) => schema.nullish().catch(undefined);

/** Characters of a tool call as progress or in an error. */
export const TOOL_MAX = 200;
