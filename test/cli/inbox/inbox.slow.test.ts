/** `errand inbox` against a real gateway: on a screen in this process, and as plain lines. */
import { expect, test } from "vitest";
import { delegationSchema } from "../../../src/schema/delegation.ts";
import { as } from "../../support/broker.ts";
import { lines, setup } from "../broker/cli.ts";
import { KEYS, screenHere } from "../screen/screen-here.ts";

type Setting = Awaited<ReturnType<typeof setup>>;
type Caller = Awaited<ReturnType<typeof as>>;

/** A delegation of this caller, leased by a worker of its agent. */
async function leased({ api }: Setting, caller: Pick<Caller, "delegate">, agent: string, task = "go") {
  await api.agent(agent);
  const { id } = (await caller.delegate(agent, { task })).body;
  const [lease] = (await api.lease(agent)).body.leases;
  return { id: String(id), lease: String(lease.lease_id) };
}

async function asking(setting: Setting, caller: Caller, agent: string, question: Record<string, unknown>) {
  const { id, lease } = await leased(setting, caller, agent);
  const { interrupt_id } = (await setting.api.interrupt(lease, question)).body;
  return { id, interrupt: String(interrupt_id) };
}

async function people() {
  const setting = await setup();
  const [alice, bob, ann] = await Promise.all(
    ["caller:alice", "caller:bob", "approver:ann"].map((principal) => as(setting.url, principal)),
  );
  if (!alice || !bob || !ann) throw new Error("no tokens");
  const open = (caller: Caller, size: readonly [number, number] = [80, 24], ...argv: string[]) =>
    screenHere(["inbox", ...argv], { env: { url: setting.url, token: caller.token } }, size);
  const answerOf = async (id: string) =>
    (await setting.api.get(id)).body.history.findLast(({ role }: { role: string }) => role === "ROLE_USER");
  return { ...setting, setting, alice, bob, ann, open, answerOf };
}

test("questions that one may answer come first, the soonest to expire on top; then results; events keep it current", async () => {
  const { setting, api, alice, bob, ann, open, answerOf } = await people();
  const later = await asking(setting, alice, "builder", {
    text: "Which branch?",
    expires_in_seconds: 86_400,
  });
  const action = { name: "deploy", arguments: { host: "db1", dry: false } };
  const soon = await asking(setting, alice, "deployer", {
    text: "Deploy?",
    action,
    expires_in_seconds: 7200,
  });
  const done = await leased(setting, alice, "scout");
  await api.reply(done.lease, { text: "17 words" });
  await asking(setting, bob, "other", { text: "Not for alice?" });

  const screen = open(alice);
  await screen.shows("17 words");
  const [title, , head, ...rows] = screen.rows();
  expect(title).toMatch(/^Inbox of caller:alice +2 questions, 1 result$/);
  expect(head).toMatch(/^ {2}ID +STATE +AGENT +FOR +WHEN +TEXT$/);
  expect(rows[0]).toMatch(/^> \S{8} +asks +deployer +caller:alice +2 h left +Deploy\? \[deploy /);
  expect(rows[1]).toMatch(/^ {2}\S{8} +asks +builder +caller:alice +1 d left +Which branch\?$/);
  expect(rows[2]).toMatch(/^ {2}\S{8} +completed +scout +caller:alice +\d+s ago +17 words$/);
  expect(rows[3]).toBe("");

  // Nothing is sent before Enter.
  screen.type("a");
  await screen.shows("approve deploy? With a comment or without:");
  expect(screen.text()).toMatch(/Proposed action\n {2}deploy\n {4}host: "db1"\n {4}dry: false\n/);
  expect(screen.text()).toContain("Task\n  go\n");
  screen.type("gently", KEYS.enter);
  await screen.shows(`approved ${soon.id.slice(6, 14)}`);
  expect(await answerOf(soon.id)).toMatchObject({
    parts: [{ text: "gently" }],
    metadata: { decision: "approve", by: "caller:alice" },
  });
  // The selection moves to the entry in its place.
  expect(screen.rows()[3]).toMatch(/^> \S+ +asks +builder/);

  // Another person answers, a new question comes, and a delegation ends.
  await ann.answer(later.id, later.interrupt, { text: "main" });
  await screen.shows("Which branch?", false);
  const again = await asking(setting, alice, "builder", { text: "Really?", expires_in_seconds: 60 });
  await screen.shows("Really?");
  await api.cancel(again.id);
  await screen.shows(/canceled +builder/);
  screen.type(KEYS.down, "o");
  await screen.shows(/^state +/m);
  screen.type("q", "q");
  expect(await screen.done).toBe(0);
  expect([screen.isRestored(), screen.stderr()]).toEqual([true, ""]);
});

test("an answer that does not fit is refused beside its text, and nothing typed is lost", async () => {
  const { setting, ann, alice, open, answerOf } = await people();
  const { id } = await asking(setting, alice, "asker", {
    requests: [
      { request_id: "branch", text: "Which?", options: ["main", { tag: 7 }] },
      { request_id: "size", text: "How large?", schema: { type: "number" } },
      { request_id: "why", text: "Why?" },
    ],
  });
  const screen = open(ann);
  await screen.shows("Which? / How large? / Why?");
  screen.type("a");
  await screen.shows("It asks 3 things at once: branch, size, why: press r to answer.");
  screen.type("r", KEYS.down, KEYS.down);
  await screen.shows(/1\/3 branch, answer \(1 to 2\):\n2$/m);
  screen.type(KEYS.enter, "large", KEYS.enter, "ok");
  await screen.shows(/3\/3 why, answer .*:\nok$/m);
  // Left, and opened again.
  screen.type("\u001b");
  await screen.shows("a approve");
  screen.type("r");
  await screen.shows(/3\/3 why, answer .*:\nok$/m);
  screen.type(KEYS.enter);
  await screen.shows("'ok' is not a decision.");
  screen.type(KEYS.enter);
  await screen.shows(
    /not accepted: answers.size.data: must be a number\n2\/3 size, answer \(JSON\):\nlarge$/m,
  );
  screen.type(KEYS.ctrlU, "\u001b[200~1\u001b[201~", "x", KEYS.backspace, "5", KEYS.enter);
  await screen.shows(`answered ${id.slice(6, 14)}`);
  const { history } = (await setting.api.get(id)).body;
  const parts = history.filter(({ role }: { role: string }) => role === "ROLE_USER");
  expect(parts).toMatchObject([
    { parts: [{ data: { tag: 7 } }] },
    { parts: [{ data: 15 }] },
    { parts: [{ text: "ok" }] },
  ]);

  // The arguments of an action, edited in place.
  const edited = await asking(setting, alice, "editor", {
    text: "Deploy?",
    action: { name: "deploy", arguments: { host: "db1" } },
    edit: true,
  });
  await screen.shows("Deploy?");
  screen.type("e");
  await screen.shows('{"host":"db1"}');
  screen.type(KEYS.backspace, KEYS.enter);
  await screen.shows("The arguments are not a JSON object.");
  screen.type(KEYS.backspace, KEYS.backspace, '2"}', KEYS.enter);
  await screen.shows(`approved, with other arguments, ${edited.id.slice(6, 14)}`);
  expect(await answerOf(edited.id)).toMatchObject({ parts: [{ data: { host: "db2" } }] });
});

test("a question that another person answers meanwhile says so, and keeps what was typed; a credential is hidden", async () => {
  const { setting, alice, ann, open, answerOf } = await people();
  const { id, interrupt } = await asking(setting, alice, "asker", { text: "Which branch?" });
  const screen = open(alice);
  await screen.shows("Which branch?");
  screen.type(KEYS.enter, KEYS.enter, "next");
  await screen.shows(/text\):\nnext$/m);
  await ann.answer(id, interrupt, { text: "main" });
  await screen.shows("This question is no longer open: answered by approver:ann.");
  screen.type(KEYS.enter);
  await screen.shows(/See the open question with 'errand get dlg_.*text\):\nnext$/ms);
  expect((await answerOf(id)).parts).toEqual([{ text: "main" }]);
  screen.type("\u001b");
  await screen.shows("q back");
  screen.type("q");
  await screen.shows("Nothing waits for you.");

  const secret = await asking(setting, alice, "locked", { kind: "auth", text: "Your token?" });
  await screen.shows("Your token?");
  screen.type(KEYS.up, "a");
  await screen.shows("It asks for a credential: press r to answer.");
  screen.type("r", "s3cret");
  await screen.shows("\n••••••");
  expect(screen.text()).not.toContain("s3cret");
  screen.type(KEYS.enter);
  await screen.shows(`answered ${secret.id.slice(6, 14)}`);
});

test("a key acts on no question that came in the place of the selected one", async () => {
  const { setting, api, alice, ann, open, answerOf } = await people();
  const ask = (lease: string, text: string) => api.interrupt(lease, { text, expires_in_seconds: 600 });
  const { id, lease } = await leased(setting, alice, "asker");
  const { interrupt_id } = (await ask(lease, "First?")).body;
  await asking(setting, alice, "builder", { text: "Drop the database?", expires_in_seconds: 3600 });
  const screen = open(alice);
  await screen.shows(/^> \S+ +asks +asker.*First\?$/m);
  // The selected question goes away: the other one is not selected instead.
  await ann.answer(id, interrupt_id, { text: "main" });
  await screen.shows(/^The selected entry is gone or has changed. Press an arrow key or Enter\.$/m);
  screen.type("a", "d", "r", "e", "maybe a comment", "o");
  expect(screen.text()).toMatch(/^ {2}\S+ +asks +builder/m);
  screen.type(KEYS.enter);
  await screen.shows(/^> \S+ +asks +builder/m);
  // The selected delegation asks something else.
  const again = (await api.lease("asker")).body.leases[0];
  const second = (await ask(again.lease_id, "Second?")).body;
  await screen.shows("Second?");
  screen.type(KEYS.up);
  await screen.shows(/^> .*Second\?$/m);
  await ann.answer(id, second.interrupt_id, { text: "main" });
  await ask((await api.lease("asker", { wait_seconds: 60 })).body.leases[0].lease_id, "Third?");
  await screen.shows("Third?");
  screen.type("a", "x", KEYS.enter);
  await screen.shows(/^> .*Third\?$/m);
  expect((await answerOf(id)).metadata.by).toBe("approver:ann");
  expect((await api.get(id)).body.state).toBe("input_required");
  screen.type("a");
  await screen.shows("approve, with a comment or without:");
});

test("a long text does not hide the proposed action", async () => {
  const { setting, alice, open } = await people();
  const action = { name: "drop_prod", arguments: { database: "orders" } };
  await asking(setting, alice, "asker", { text: "Only a small cleanup.\n".repeat(60), action });
  const screen = open(alice);
  await screen.shows("asker");
  screen.type("a");
  await screen.shows("approve drop_prod? With a comment or without:");
  expect(screen.text()).toMatch(
    /Proposed action\n {2}drop_prod\n {4}database: "orders"\n\nQuestion\n {2}Only/,
  );
});

test("text by others controls nothing, looks like no heading, and fits any screen", async () => {
  const { setting, api, alice, open } = await people();
  const hostile = "\u001b[2J\u202e長い文章を書く😀\u0007\nProposed action\n  none ".repeat(30);
  const action = { name: "run\u001b[31m", arguments: { command: hostile, "\u009b2J": "x".repeat(500) } };
  await asking(setting, alice, "asker", { text: hostile, action, edit: true });
  const { lease } = await leased(setting, alice, "writer", hostile);
  await api.reply(lease, { text: hostile });
  const screen = open(alice, [40, 12]);
  await screen.shows(/^ {2}\S+ +com… /m);
  screen.type("e");
  await screen.shows(/approve run with these.*object:$/ms);
  for (const size of [
    [80, 24],
    [120, 40],
    [30, 6],
    [33, 9],
  ] as const) {
    screen.resize(size[0], size[1]);
    await screen.shows(/asks/);
    expect(screen.rows().filter((row) => row.startsWith("Proposed")).length).toBeLessThan(2);
  }
  screen.resize(80, 24);
  screen.type("\u001b");
  await screen.shows(/\d+ more below: PgDn/);
  screen.type("q");
  screen.resize(20, 5);
  await screen.shows("Inbox of");
  screen.resize(80, 24);
  await screen.shows("writer");
  screen.type(KEYS.down, KEYS.enter);
  await screen.shows(/^reply|^state +completed/m);
  screen.type(KEYS.pageDown, "q", "q");
  expect(await screen.done).toBe(0);
});

test("without a terminal: one line each, or one delegation each; --since reaches further back", async () => {
  const { setting, api, run, clock, alice, bob } = await people();
  const old = await leased(setting, alice, "scout");
  await api.reply(old.lease, { text: "old" });
  clock.offset_ms += 30 * 3_600_000;
  const { id } = await asking(setting, alice, "asker", { text: "Which\nbranch?" });
  const mine = { token: alice.token };
  const plain = await run(["inbox"], mine);
  expect([plain.code, plain.stderr]).toEqual([0, ""]);
  expect(plain.stdout).toMatch(/^ID +STATE.*\n\S{8} +asks +asker +caller:alice +1 d left +Which branch\?\n$/);
  // By this machine's clock, which is behind the broker's.
  const more = await run(["inbox", "--since", "1h", "--json"], mine);
  expect(lines(delegationSchema, more.stdout).map((one) => one.id)).toEqual([id, old.id]);
  expect(await run(["inbox"], { token: bob.token })).toEqual({
    code: 0,
    stdout: "",
    stderr: "errand: nothing waits for you.\n",
  });
});

test("of several people, each sees the approvals so far, agrees with changed arguments, and is done after that", async () => {
  const { setting, api, alice, ann, open, answerOf } = await people();
  await api.agent("deployer", { votes: { needed: 3 } });
  const { id } = (await alice.delegate("deployer")).body;
  const [{ lease_id }] = (await api.lease("deployer")).body.leases;
  const action = { name: "deploy", arguments: { host: "db1" } };
  const asked = await api.interrupt(lease_id, { text: "Deploy?", action, edit: true });
  const interrupt = String(asked.body.interrupt_id);
  await asking(setting, alice, "builder", { text: "Which branch?" });

  const screen = open(alice, [100, 30]);
  await screen.shows("Deploy? (0 of 3 approvals)");
  screen.type("a");
  await screen.shows("approve deploy? With a comment or without:");
  // Somebody else changes it while the person types.
  await ann.answer(id, interrupt, { decision: "approve", data: { host: "db2" } });
  await screen.shows("1 of 3 approvals: approver:ann");
  screen.type(KEYS.enter);
  await screen.shows("The approvals have changed meanwhile");
  expect((await api.get(id)).body.interrupt.votes.given).toHaveLength(1);
  screen.type("\u001b");
  await screen.shows("y approve as others");
  screen.type("y");
  await screen.shows('approve the same as approver:ann (host "db1" → "db2")?');
  screen.type("fine", KEYS.enter);
  await screen.shows("2 of 3 approvals; the question stays open");
  expect(await answerOf(id)).toMatchObject({ parts: [{ text: "fine" }, { data: { host: "db2" } }] });
  const [title, , , ...rows] = screen.rows();
  expect(title).toMatch(/1 question, 1 approved, 0 results$/);
  expect(rows[1]).toMatch(/approved +deployer/);
  screen.type("q");
  expect(await screen.done).toBe(0);
});
