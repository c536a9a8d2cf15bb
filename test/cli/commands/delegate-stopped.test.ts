/** Ctrl-C while tasks are sent, and a wait that fails: nothing that the broker accepted is lost. As processes: signals are global. */
import { expect, test } from "vitest";
import { delegationLike, ID, stubBroker } from "../../client/stub-broker.ts";
import { errand, freshDir } from "../../support/program.ts";
import { until } from "../../support/until.ts";
import { run } from "../fake-host.ts";

test("Ctrl-C before the answer prints the idempotency key, with which a repeat delegates nothing twice", async () => {
  const stub = await stubBroker((request, answer) => {
    // A submit gets no answer.
    if (request.method !== "POST") answer.json({});
  });
  const started = [
    { args: ["scout", "go"], input: "" },
    { args: ["scout", "--batch", "-"], input: '{"task": "one"}\n{"task": "two"}\n' },
    { args: ["scout", "go", "--json"], input: "" },
  ].map(({ args, input }) =>
    errand(freshDir(), ["delegate", ...args], { ERRAND_URL: stub.url, ERRAND_TOKEN: "t" }, input),
  );
  await until(() => stub.seen.length === started.length, { what: "the submits" });
  for (const { child } of started) child.kill("SIGINT");
  expect(await Promise.all(started.map(({ ended }) => ended()))).toEqual([130, 130, 130]);
  const keys = stub.seen.flatMap(({ headers, body }) => {
    const [first] = Array.isArray(body.delegations) ? body.delegations : [];
    return first ? String(first.idempotency_key).replace(/-1$/, "") : String(headers["idempotency-key"]);
  });
  const [one, batch, json] = started.map(({ stderr }) => stderr());
  for (const said of [one, batch]) {
    const key = /--idempotency-key ([\w-]+)[;,]/.exec(said ?? "")?.[1];
    expect(keys).toContain(key);
  }
  const problem = JSON.parse(json ?? "");
  expect(problem).toMatchObject({ code: "interrupted", details: { outcome: "unknown" } });
  expect(keys).toContain(problem.details.idempotency_key);
});

test("a wait for a batch that fails prints what was accepted before", async () => {
  const stub = await stubBroker((request, answer) => {
    if (request.path === "/v1/status")
      answer.json({
        principal: "caller:ci",
        version: "1.2.3",
        broker_id: "brk_1",
        now: "2026-01-01T00:00:00.000Z",
        started_at: "2026-01-01T00:00:00.000Z",
        url: "http://127.0.0.1:1",
        redis: null,
      });
    else if (request.method === "POST")
      answer.json({ results: [{ status: 202, delegation: delegationLike() }] });
    else if (request.query.get("limit") === "1") answer.json({ events: [], cursor: "1-0" });
    // The token was revoked meanwhile.
    else answer.problem(401, "unauthenticated", "AUTH");
  });
  const setting = { env: { url: stub.url, token: "t" }, stdin: '{"task": "one"}', tty: { stdin: false } };
  const args = ["delegate", "scout", "--batch", "-", "--wait"];
  const text = await run([...args], setting);
  expect([text.code, text.stdout]).toEqual([77, expect.stringContaining(ID.slice(6, 14))]);
  expect(text.stderr).toContain("what has not ended continues.");
  const json = await run([...args, "--json"], setting);
  expect([json.code, JSON.parse(json.stdout)]).toMatchObject([77, { line: 1, delegation: { id: ID } }]);
});
