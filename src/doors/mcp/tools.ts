/** The one table of tools. Limit: order is how clients show them. */
import { delegatingTools } from "./delegating-tools.ts";
import { followingTools } from "./following-tools.ts";
import { lookingTools } from "./looking-tools.ts";
import type { Tool } from "./tool.ts";
import { workingTools } from "./working-tools.ts";

export const TOOLS: readonly Tool[] = [
  ...delegatingTools,
  ...followingTools,
  ...lookingTools,
  ...workingTools,
];
