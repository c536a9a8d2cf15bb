/** The name of an action, or the beginning of one and `*`. */
import * as z from "zod";

/** The name of an action, or the beginning of one and `*`; up to 256 characters. */
export const actionPatternSchema = z
  .string()
  .min(1)
  .max(256)
  .refine((pattern) => !pattern.slice(0, -1).includes("*"), "`*` is allowed only at the end");

export const matchesAction = (pattern: string, name: string): boolean =>
  pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
