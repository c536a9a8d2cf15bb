/** Whether the broker refused a call only for its usage: then the call is repeated without it. */
import * as z from "zod";
import { isInvalid } from "./errors.ts";

const issuesSchema = z.array(z.object({ path: z.string() }));

export function isForUsage(error: unknown): boolean {
  if (!isInvalid(error)) return false;
  const { data = [] } = issuesSchema.safeParse(error.details?.issues);
  return data.length > 0 && data.every(({ path }) => path === "usage" || path.startsWith("usage."));
}
