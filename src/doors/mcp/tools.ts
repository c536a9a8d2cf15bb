/** The one table of tools. Limit: order is how clients show them. */
import { delegatingTools } from "./delegating.ts";
import { followingTools } from "./following.ts";
import { lookingTools } from "./looking.ts";
import type { Tool } from "./tool.ts";
import { workingTools } from "./working.ts";

export const TOOLS: readonly Tool[] = [
  ...delegatingTools,
  ...followingTools,
  ...lookingTools,
  ...workingTools,
];
