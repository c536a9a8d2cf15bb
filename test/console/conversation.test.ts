/** The conversation of a delegation with many messages, and the events that it and the timeline show. Needs a build. */
import { describe, expect, test } from "vitest";
import {
  answersIn,
  editOf,
  examine,
  noTalkEvents,
  reportsBetween,
} from "../../src/console/delegation/talk-events.ts";
import type { DelegationEvent } from "../../src/schema/event.ts";
import { client, OPERATOR, startBroker } from "../support/broker.ts";
import { openTab, SKIP, showView } from "../support/browser.ts";
import { eventWith } from "../support/event.ts";
import { until } from "../support/until.ts";

function event(seq: number, status: string, more: Record<string, unknown> = {}): DelegationEvent {
  const state = status === "queued" ? "submitted" : "working";
  return eventWith({ seq, at: `2026-01-01T00:00:0${seq}.000Z`, state, status, ...more });
}

const MESSAGE = { messageId: "m1", role: "ROLE_AGENT", parts: [{ text: "May I?" }] };
const AT = "2026-01-01T00:00:04.000Z";
const QUESTION = { id: "int_1", kind: "input", raised_at: AT, expires_at: AT };

test("each event is examined once: reports are grouped by the messages between them, questions found by their id", () => {
  const action = { name: "run", arguments: { hosts: 12, now: true } };
  const request = { request_id: "r1", message: MESSAGE, options: ["now"], action };
  const events = [event(1, "queued"), event(2, "progress"), event(3, "progress")];
  const talk = noTalkEvents();
  examine(talk, events);
  events.push(
    event(4, "interrupted", { interrupt: { ...QUESTION, requests: [request] } }),
    event(5, "progress"),
  );
  examine(talk, events);
  examine(talk, events);
  const seqsBetween = (...instants: (string | null)[]) =>
    reportsBetween(talk.reports, instants).map((group) => group.map(({ seq }) => seq));
  expect(seqsBetween("2026-01-01T00:00:02.500Z", null, "2026-01-01T00:00:04.000Z")).toEqual([
    [2],
    [],
    [3],
    [5],
  ]);
  expect([...talk.asked]).toEqual([["m1", { options: ["now"], action, at: "2026-01-01T00:00:04.000Z" }]]);
  const edit = (metadata: Record<string, unknown>) =>
    editOf(
      {
        messageId: "m2",
        role: "ROLE_USER",
        parts: [{ text: "Fewer." }, { data: { hosts: 3, now: true } }],
        metadata: { interrupt_id: "int_1", request_id: "r1", decision: "approve", ...metadata },
      },
      talk,
    );
  expect(edit({})).toEqual([{ path: ["hosts"], from: 12, to: 3 }]);
  for (const other of [{ interrupt_id: "int_2" }, { request_id: "r2" }, { decision: "deny" }])
    expect(edit(other)).toBeNull();
});

test("the answer to each question: alone by its place, among several by the events", () => {
  const question = (messageId: string) => ({ ...MESSAGE, messageId, role: "ROLE_AGENT" as const });
  const answer = (messageId: string, interrupt_id: string, request_id: string) => ({
    ...{ messageId, role: "ROLE_USER" as const, parts: [{ text: messageId }] },
    metadata: { interrupt_id, request_id },
  });
  const followUp = { messageId: "f", role: "ROLE_USER" as const, parts: [{ text: "also" }] };
  const history = [
    ...[question("q1"), followUp, answer("a1", "int_1", "r1")],
    ...[question("q2"), question("q3"), answer("a3", "int_2", "r3"), answer("a2", "int_2", "r2")],
    question("open"),
  ];
  const talk = noTalkEvents();
  const found = () => [...answersIn(history, talk)].map(([id, { messageId }]) => [id, messageId]).sort();
  expect(found()).toEqual([["q1", "a1"]]);
  const requests = ["q2", "q3"].map((id) => ({ request_id: `r${id.slice(1)}`, message: question(id) }));
  examine(talk, [event(1, "interrupted", { interrupt: { ...QUESTION, id: "int_2", requests } })]);
  expect(found()).toEqual([
    ["q1", "a1"],
    ["q2", "a2"],
    ["q3", "a3"],
  ]);
});

describe.skipIf(SKIP)("in Chromium", () => {
  test("the latest messages are drawn, earlier ones on request; opened reports stay open; no event is read twice", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("scout");
    const { id } = (await api.delegate("scout", { task: "Look around" })).body;
    const [{ lease_id: lease }] = (await api.lease("scout", { lease_seconds: 900 })).body.leases;
    for (let n = 0; n < 60; n += 1) await api.message(id, `Message ${n}.`);
    for (let done = 0; done < 3; done += 1) await api.heartbeat(lease, { progress: { done, total: 9 } });
    const { page } = await openTab(url);
    const reads: (string | null)[] = [];
    page.on("request", (request) => {
      const { pathname, searchParams } = new URL(request.url());
      if (pathname === `/v1/delegations/${id}/events`) reads.push(searchParams.get("after"));
    });
    await page.getByLabel("Token").fill(OPERATOR);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Live" }).waitFor();
    await showView(page, `#/live?open=${id}`);
    const messages = page.locator(".conversation .said-block .text");
    const reports = page.locator(".conversation .reports");
    await reports.locator("summary", { hasText: /^2\/9 .*2 earlier reports$/ }).waitFor();
    expect(await messages.allTextContents()).toEqual([
      "Look around",
      ...Array.from({ length: 50 }, (_, n) => `Message ${n + 10}.`),
    ]);
    const earlier = page.getByRole("button", { name: "Show earlier" });
    expect(await earlier.textContent()).toBe("Show earlier (10 messages)");
    await reports.locator("summary").click();
    await reports.locator("ol li").first().waitFor();
    await api.message(id, "Message 60.");
    await until(async () => (await messages.last().textContent()) === "Message 60.");
    await api.heartbeat(lease, { progress: { done: 3, total: 9 } });
    await reports.nth(1).waitFor();
    // Above the new message, nothing has changed.
    expect(await reports.first().locator("ol li").count()).toBe(2);
    expect(await messages.nth(1).textContent()).toBe("Message 10.");
    await earlier.click();
    await until(async () => (await messages.count()) === 62);
    expect(await messages.nth(1).textContent()).toBe("Message 0.");
    expect(await earlier.count()).toBe(0);

    await showView(page, `#/live?open=${id}&tab=timeline`);
    await page.locator(".event", { hasText: "3/9" }).waitFor();
    await showView(page, `#/live?open=${id}`);
    await reports.nth(1).waitFor();
    expect(reads.filter((after, index) => reads.indexOf(after) !== index)).toEqual([]);
  });
});
