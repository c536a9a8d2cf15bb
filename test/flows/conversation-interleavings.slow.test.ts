import { test } from "vitest";
import { walkThroughConversations } from "./conversation-walks.ts";

test("the same in many more walks", () => walkThroughConversations(2, 200), 240_000);
