/** The questions that `errand watch --questions` shows, from a stub that loses events and has many questions. */
import { expect, test } from "vitest";
import { watchQuestions } from "../../src/cli/watch-questions.ts";
import { Delegator } from "../../src/client/delegator.ts";
import { delegationLike, stubBroker } from "../client/stub-broker.ts";
import { run } from "./fake-host.ts";

const PAGE = 100;
const frame = (data: object) => `id: 9-0\nevent: x\ndata: ${JSON.stringify(data)}\n\n`;
const idOf = (n: number) => `dlg_0_${String(n).padStart(26, "0")}`;

const asking = (n: number) =>
  delegationLike({
    id: idOf(n),
    state: "input_required",
    version: 3,
    interrupt: {
      id: `int_${n}`,
      kind: "input",
      requests: [
        { request_id: "r", message: { messageId: "q", role: "ROLE_AGENT", parts: [{ text: "Which?" }] } },
      ],
      raised_at: "2026-01-01T00:00:00.000Z",
      expires_at: "2026-01-02T00:00:00.000Z",
    },
  });

test("all open questions are shown, and those that are open after a RESET only if they are new", async () => {
  let open = 1_050;
  const asked = (n: number, seq: number) =>
    frame({
      ...{
        id: "9-0",
        type: "DELEGATION_STATUS",
        delegation_id: idOf(n),
        seq,
        at: "2026-01-01T00:00:00.000Z",
      },
      ...{ state: "input_required", target: "scout", delegator: "caller:alice", context_id: "c" },
      status: "interrupted",
      interrupt: asking(n).interrupt,
    });
  const { url } = await stubBroker(({ path, query, headers }, answer) => {
    if (path === "/v1/events" && headers.accept?.includes("event-stream")) {
      open += 2;
      // The newest but one is asked here, and found again in the list.
      return answer.events([asked(open - 1, 3), frame({ id: "8-0", type: "RESET" }), asked(open - 1, 3)]);
    }
    if (path === "/v1/events") return answer.json({ events: [], cursor: "7-0" });
    if (path !== "/v1/delegations") return answer.json(asking(Number(path.split("_").at(-1))));
    const newest = Number(query.get("cursor") ?? open);
    const page = Array.from({ length: Math.min(PAGE, newest) }, (_, at) => asking(newest - at));
    const next = newest > PAGE ? String(newest - PAGE) : null;
    answer.json({ delegations: page, next_cursor: next, scanned_to: null });
  });
  const stop = new AbortController();
  const ids: string[] = [];
  /** The cursors, each with the number of questions that were shown up to there. */
  const cursors: unknown[] = [];
  const resets: number[] = [];
  const watching = watchQuestions(new Delegator({ url, token: "t" }), {}, { signal: stop.signal });
  for await (const event of watching) {
    if (event.type === "RESET") resets.push(ids.length);
    else ids.push(event.delegation_id);
    if ("id" in event) cursors.push([event.id, ids.length]);
    if (ids.length === 1_052) break;
  }
  expect(ids).toEqual([...Array(1_050).keys(), 1_050, 1_051].map((n) => idOf(n + 1)));
  // A reader that stores them loses no question: none covers questions that come after it.
  expect(cursors).toEqual([
    ["7-0", 1_050],
    ["9-0", 1_051],
    ["8-0", 1_052],
  ]);
  expect(resets).toEqual([1_051]);
});

test("a RESET is printed with --json, and else noted; without open questions, it has the cursor", async () => {
  const end = {
    ...{ id: "9-0", type: "DELEGATION_COMPLETE", delegation_id: idOf(1), seq: 4 },
    ...{ at: "2026-01-01T00:00:00.000Z", state: "completed", target: "scout" },
    ...{ delegator: "caller:alice", context_id: "c" },
  };
  const { url } = await stubBroker(({ headers }, answer) => {
    if (!headers.accept?.includes("event-stream")) return answer.json(delegationLike({ id: idOf(1) }));
    answer.events([frame({ id: "8-0", type: "RESET" }), frame(end)]);
  });
  const watching = (...more: string[]) =>
    run(["watch", idOf(1), "--questions", ...more], { env: { url, token: "t" } });
  expect(await watching("--json")).toMatchObject({
    code: 0,
    stdout: '{"id":"8-0","type":"RESET"}\n',
    stderr: "",
  });
  expect(await watching()).toMatchObject({ stdout: "", stderr: expect.stringContaining("no longer stored") });
});
