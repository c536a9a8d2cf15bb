/** The one table of tools. Limit: order is how clients show them. */
import { delegatingTools } from "./delegate-tools.ts";
import { lookingTools } from "./discovery-tools.ts";
import { followingTools } from "./status-tools.ts";
import type { Tool } from "./tool.ts";
import { workingTools } from "./worker-tools.ts";

export const TOOLS: readonly Tool[] = [
  ...delegatingTools,
  ...followingTools,
  ...lookingTools,
  ...workingTools,
];
