/** The usage that a command writes to the file ERRAND_USAGE_FILE: a JSON object, or one on each line; the last whole one counts. */
import { readFile } from "node:fs/promises";
import { type UsageReport, usageReportSchema } from "../../schema/usage.ts";

/** Undefined if there is none. */
export async function readUsage(file: string): Promise<UsageReport | undefined> {
  const text = await readFile(file, "utf8").catch(() => "");
  for (const candidate of [text, ...text.trim().split("\n").reverse()]) {
    const { data } = usageReportSchema.safeParse(parsed(candidate));
    if (data) return data;
  }
  return undefined;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
