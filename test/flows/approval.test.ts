/** A question and its approval; no participating process lives through all of it. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { as, client, freshDb } from "../support/broker.ts";
import { startGatewayProcess } from "../support/gateway-process.ts";
import { checkHistory, eventsOf } from "../support/history.ts";
import { until } from "../support/until.ts";

const SCRIPT = fileURLToPath(new URL("../support/child-role.mjs", import.meta.url));

interface Part {
  readonly child: ChildProcess;
  /** Everything it has reported so far. */
  readonly reports: ReturnType<typeof JSON.parse>[];
  /** Resolves with the first report under this name. */
  readonly reported: (name: string) => Promise<ReturnType<typeof JSON.parse>>;
  readonly ended: Promise<number | null>;
}

function play(role: string, ...args: readonly string[]): Part {
  const child = fork(SCRIPT, [role, ...args], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  const reports: Part["reports"] = [];
  child.on("message", (message) => reports.push(message));
  const ended = once(child, "exit").then(([code]) => code);
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  const reported = async (name: string) =>
    (
      await until(() => reports.find((one) => one[name] !== undefined), {
        what: `${role}: ${name}`,
      })
    )[name];
  return { child, reports, reported, ended };
}

test("a late approval from another process, after the asking worker and the delegator have exited", {
  timeout: 60_000,
}, async () => {
  const { url } = await startGatewayProcess(await freshDb(), { sweepEveryMs: 100 });
  const api = client(url);
  await api.agent("scout");
  const alice = await as(url, "caller:alice");
  const scout = await as(url, "agent:scout");
  const ann = await as(url, "approver:ann");
  const eve = await as(url, "viewer:eve");

  const watcher = play("watcher", url, eve.token);
  await watcher.reported("watching");
  const asker = play("agent", url, scout.token, "first");
  const delegator = play("delegator", url, alice.token);
  const id = await delegator.reported("id");

  // The delegator's stream ends with the question; its process exits.
  const interrupt_id = await asker.reported("interrupt_id");
  expect(await delegator.reported("left_at")).toBe("input_required");
  expect(await delegator.ended).toBe(0);
  // The asking worker is killed.
  asker.child.kill("SIGKILL");
  expect(await asker.ended).toBeNull();
  expect((await api.get(id)).body).toMatchObject({
    state: "input_required",
    version: 3,
    attempt: 1,
    lease: null,
    interrupt: { id: interrupt_id },
  });

  // Another worker of the agent already waits; a third process approves.
  const worker = play("agent", url, scout.token, "second");
  const approver = play("approver", url, ann.token);
  expect(await approver.reported("answered")).toBe(interrupt_id);
  expect(await approver.ended).toBe(0);
  expect(await worker.reported("outcome")).toBe("matched");
  expect(worker.reports).toMatchObject([{ attempt: 1 }]);
  const reader = play("reader", url, alice.token);
  expect(await reader.reported("results")).toEqual([{ id, state: "completed", text: "deployed: approve" }]);

  const story = [
    "SENT:queued",
    "STATUS:leased",
    "STATUS:interrupted",
    "STATUS:answered",
    "STATUS:leased",
    "COMPLETE:",
  ];
  const seen = () =>
    watcher.reports.slice(1).map(({ type, status }) => `${type.replace("DELEGATION_", "")}:${status ?? ""}`);
  await until(() => seen().includes("COMPLETE:"), { what: "the watcher's last event" });
  expect(seen()).toEqual(story);
  const events = await eventsOf(api, id);
  checkHistory(events, "finished");
  expect(events).toHaveLength(story.length);
  expect(events.find(({ status }) => status === "answered")).toMatchObject({ by: "approver:ann" });
});
