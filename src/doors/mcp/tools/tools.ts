/** All tools, in the order in which clients show them. */
import { controlTools } from "./control-tools.ts";
import { delegateTools } from "./delegate-tools.ts";
import { discoveryTools } from "./discovery-tools.ts";
import { partsTool } from "./parts-tool.ts";
import { scheduleTools } from "./schedule-tools.ts";
import { statusTools } from "./status-tools.ts";
import type { Tool } from "./tool.ts";
import { workerTools } from "./worker-tools.ts";

export const TOOLS: readonly Tool[] = [
  ...delegateTools,
  ...statusTools,
  ...controlTools,
  ...scheduleTools,
  ...discoveryTools,
  ...workerTools,
  partsTool,
];
