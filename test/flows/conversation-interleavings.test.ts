import { test } from "vitest";
import { walkThroughConversations } from "./conversation-walks.ts";

test(
  "one delegation of a conversation is at work at a time, in order, whatever the order of events",
  () => walkThroughConversations(1, 20, ["admitted", "switched", "died", "expired"]),
  120_000,
);
