/** One line for each event. Limit: what people look for in it, not every part. */
import { expect, test } from "vitest";
import { eventLine } from "../../src/cli/event-line.ts";

const same = (text: string): string => text;

test("a release says why, and when it goes on", () => {
  const line = eventLine(
    {
      id: "1-0",
      type: "DELEGATION_STATUS",
      delegation_id: "dlg_0_00000000000000000000000000",
      seq: 3,
      at: "2026-01-01T10:00:00.000Z",
      state: "submitted",
      status: "released",
      target: "scout",
      delegator: "caller:alice",
      context_id: "c",
      retry_at: "2026-01-01T10:00:05.000Z",
      reason: "the A2A server\ncannot be reached",
    },
    { red: same, green: same, yellow: same, bold: same, dim: same },
  );
  expect(line).toContain("released again at 10:00:05.000 (the A2A server cannot be reached)");
});

test("a next attempt says why the last one failed", () => {
  const line = eventLine(
    {
      id: "1-0",
      type: "DELEGATION_STATUS",
      delegation_id: "dlg_0_00000000000000000000000000",
      seq: 3,
      at: "2026-01-01T10:00:00.000Z",
      state: "submitted",
      status: "retrying",
      target: "scout",
      delegator: "caller:alice",
      context_id: "c",
      attempt: 2,
      retry_at: "2026-01-01T10:00:05.000Z",
      error: { code: "command_failed", message: "exit status 75\nno disk", category: "UPSTREAM" },
    },
    { red: same, green: same, yellow: same, bold: same, dim: same },
  );
  expect(line).toContain("retrying attempt 2 again at 10:00:05.000 (command_failed: exit status 75 no disk)");
});
