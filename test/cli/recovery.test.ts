/** The recovery in error messages: it names the delegation and the next command. Runs against a stub broker. */
import { describe, expect, test } from "vitest";
import { localTime } from "../../src/cli/show/time.ts";
import { ERRORS } from "../../src/schema/errors.ts";
import { type Answer, delegationLike, failedWith, ID, type Seen, stubBroker } from "../client/stub-broker.ts";
import { run } from "./fake-host.ts";

/** Accepts a delegation; `then` answers all other requests. */
async function accepting(then: (answer: Answer, request: Seen) => void) {
  const { url } = await stubBroker((request, answer) => {
    if (request.path === "/v1/delegations") answer.json(delegationLike(), 202);
    else then(answer, request);
  });
  return { url, token: "t" };
}

describe("a wait that fails after the delegation was accepted", () => {
  // The CLI does not wait this long, so the first failure is final.
  const away = (answer: Answer) =>
    answer.problem(503, "redis_unavailable", "TRANSPORT", { retry_after: 900 });

  test.each(["--wait", "--watch"])(
    "%s says that the delegation continues, and how to wait again",
    async (how) => {
      const env = await accepting(away);
      const { code, stdout, stderr } = await run(["delegate", "scout", "x", how], { env });
      expect([code, stdout]).toEqual([75, ""]);
      expect(stderr).toContain("about redis_unavailable. Do this. ");
      expect(stderr).toContain(`${ID} was accepted and continues; 'errand get ${ID} --wait' waits again.\n`);
    },
  );

  test("with --json the problem has its id", async () => {
    const env = await accepting(away);
    const { code, stdout, stderr } = await run(["delegate", "scout", "x", "--wait", "--json"], { env });
    expect([code, stdout]).toEqual([75, ""]);
    expect(JSON.parse(stderr)).toMatchObject({
      code: "redis_unavailable",
      delegation_id: ID,
      recovery: expect.stringContaining(`errand get ${ID} --wait`),
    });
  });

  test("a delegation that no longer exists does not continue", async () => {
    const env = await accepting((answer) => answer.problem(404, "delegation_not_found", "UPSTREAM"));
    const { stderr } = await run(["delegate", "scout", "x", "--wait", "--json"], { env });
    expect(JSON.parse(stderr)).toMatchObject({ delegation_id: ID, recovery: "Do this." });
  });
});

test.each([
  ["approve", []],
  ["answer", ["main"]],
  ["answer", ["main", "--interrupt", "int_1"]],
] as const)(
  "%s %j of an expired question says so, and how to make the agent ask again",
  async (verb, more) => {
    const stub = await stubBroker((request, answer) => {
      if (request.method === "POST") answer.problem(409, "interrupt_not_open", "PROTOCOL");
      else answer.json(failedWith("TIMEOUT", "interrupt_expired"));
    });
    const { code, stderr } = await run([verb, ID, ...more], { env: { url: stub.url, token: "t" } });
    expect([code, stderr]).toEqual([
      64,
      `errand: the question of ${ID} has expired. Its delegator or the operator can delegate it again with 'errand redrive ${ID}'; it then asks again.\n`,
    ]);
  },
);

test("the prompt on a terminal reports an expired question, too", async () => {
  const stub = await stubBroker((_request, answer) =>
    answer.json(failedWith("TIMEOUT", "interrupt_expired")),
  );
  const env = { url: stub.url, token: "t" };
  const { code, stderr } = await run(["answer", ID], {
    env,
    tty: { stderr: true },
    childEnv: { NO_COLOR: "1" },
  });
  expect([code, stderr]).toEqual([64, expect.stringContaining(`'errand redrive ${ID}'`)]);
});

test("a wait that a question ends says how long the question stays open", async () => {
  const env = await accepting((answer) => {
    const message = { messageId: "q", role: "ROLE_AGENT", parts: [{ text: "which one?" }] };
    const times = { raised_at: "2026-01-01T00:00:00.000Z", expires_at: "2026-01-01T00:30:00.000Z" };
    const interrupt = { id: "int_1", kind: "input", requests: [{ request_id: "r", message }], ...times };
    answer.json(delegationLike({ state: "input_required", interrupt }));
  });
  const { stderr } = await run(["delegate", "scout", "x", "--wait"], { env });
  expect(stderr).toContain(
    `asks: which one? The question is open until ${localTime("2026-01-01T00:30:00.000Z")}. Answer with 'errand answer`,
  );
});

describe("the recovery names the delegation", () => {
  test.each([
    [["cancel", ID], "already_finished", `See the result with 'errand get ${ID}'`],
    [["redrive", ID], "wrong_state", `Check the state with 'errand get ${ID}'`],
    [["message", ID, "hi"], "already_finished", `'errand get ${ID}'`],
  ] as const)("%j", async (argv, code, said) => {
    const stub = await stubBroker((_request, answer) =>
      answer.problem(409, code, "PROTOCOL", { recovery: ERRORS[code].recovery }),
    );
    const { stderr } = await run([...argv], { env: { url: stub.url, token: "t" } });
    expect(stderr).toContain(said);
  });

  test.each([
    [["delegate", "scout", "x"], "--wait"],
    [["get", ID], "--wait"],
  ])("%j when the wait timed out", async (argv, how) => {
    const env = await accepting((answer, request) => {
      const ms = Number(request.query.get("wait_seconds")) * 1000;
      setTimeout(() => answer.json(delegationLike()), ms);
    });
    const { code, stderr } = await run([...argv, how, "--timeout", "0.1"], { env });
    expect(code).toBe(124);
    expect(stderr).toContain(
      `It continues: 'errand get ${ID} --wait' waits again, 'errand cancel ${ID}' cancels it.\n`,
    );
  });

  test("and the agent, if a worker must be started", async () => {
    const error = { category: "TIMEOUT", code: "not_picked_up", message: "nobody came", retryable: false };
    const { recovery } = ERRORS.not_picked_up;
    const ended = delegationLike({ state: "failed", error: { ...error, recovery } });
    const env = await accepting((answer) => answer.json(ended));
    const { stderr } = await run(["delegate", "scout", "x", "--wait"], { env });
    expect(stderr).toContain(
      `Start a worker with 'errand work --agent scout', then run 'errand redrive ${ID}'.`,
    );
  });
});

test("an error code of the agent's own gets the recovery of agent_error", async () => {
  const { recovery } = ERRORS.agent_error;
  const error = { category: "UPSTREAM", code: "my_own", message: "oops", retryable: false, recovery };
  const env = await accepting((answer) => answer.json(delegationLike({ state: "failed", error })));
  const { stderr } = await run(["delegate", "scout", "x", "--wait"], { env });
  expect(stderr).toBe(
    `errand: ${ID} failed: oops. The message came from the worker; 'errand get ${ID}' shows the rest.\n`,
  );
});

test.each([
  ["get"],
  ["cancel"],
  ["redrive"],
  ["watch"],
  ["answer"],
  ["approve"],
  ["message"],
  ["list", "--tree"],
])("%s with a malformed id shows the form of ids, and where to find them", async (...argv) => {
  const { code, stderr } = await run([...argv, "xyz"], { stdin: "hi" });
  expect(code).toBe(64);
  expect(stderr).toContain("'xyz'");
  expect(stderr).toContain(
    "Pass the id of a delegation (dlg_…), its beginning (at least 4 characters, with or without the dlg_0_), or @last",
  );
});
