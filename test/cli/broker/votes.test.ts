/** Approvals of several people in the CLI, against a real gateway. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Counted } from "../../../src/cli/counted.ts";
import { LiveInbox } from "../../../src/cli/inbox/live-inbox.ts";
import { whyClosed } from "../../../src/cli/show/questions.ts";
import { as } from "../../support/broker.ts";
import { run as runHere } from "../fake-host.ts";
import { screenHere } from "../screen/screen-here.ts";
import { setup } from "./cli.ts";

const SCALE = {
  kind: "input",
  text: "Scale it?",
  action: { name: "scale", arguments: { replicas: 3 } },
  edit: true,
};

async function asked(votes: Record<string, unknown> = { needed: 2 }) {
  const broker = await setup();
  const { api, url } = broker;
  await api.agent("scout", { votes });
  const ask = async (question: Record<string, unknown> = SCALE) => {
    const id = String((await api.delegate("scout")).body.id);
    const [lease] = (await api.lease("scout")).body.leases;
    const interrupt = String((await api.interrupt(lease.lease_id, question)).body.interrupt_id);
    return { id, interrupt };
  };
  const [ann, bob] = [await as(url, "approver:ann"), await as(url, "approver:bob")];
  const by = (who: { token: string }, ...args: string[]) => broker.run(args, { token: who.token });
  /** On a terminal. */
  const at = (who: { token: string }, stdin: string, ...args: string[]) =>
    runHere(args, { env: { url, token: who.token }, stdin, tty: { stderr: true } });
  return { ...broker, ask, ...(await ask()), ann, bob, by, at };
}

test("an approval that is not the last one says so, and the last one is an answer", async () => {
  const { id, ann, bob, by } = await asked();
  const first = await by(ann, "approve", id);
  expect(first.stdout).toBe(`approved ${id}, 1 of 2 approvals; the question stays open\n`);
  expect((await by(ann, "get", id)).stdout).toContain("1 of 2 approvals: approver:ann");
  expect((await by(bob, "answer", id, "--decision", "approve")).stdout).toBe(`answered ${id}\n`);
  expect((await by(bob, "answers")).stdout).toContain("approver:ann, approver:bob");
});

test("who has approved has nothing to do until the approvals are void", async () => {
  const { id, interrupt, ann, bob, by } = await asked();
  expect((await by(ann, "inbox")).stdout).toMatch(/asks +scout .*Scale it\? \(0 of 2 approvals\)/);
  expect((await by(ann, "answer", id, "--decision", "approve")).stdout).toContain("1 of 2 approvals");
  expect((await by(ann, "inbox")).stdout).toMatch(/approved +scout .*Scale it\? \(1 of 2 ap/);
  expect((await by(ann, "status")).stdout).toContain("none for you");
  expect((await by(bob, "status")).stdout).toContain("1 for you");
  const all = await by(ann, "approve", "--all", "--yes");
  expect([all.stdout, all.stderr]).toEqual(["", expect.stringContaining("nothing to approve")]);
  await bob.answer(id, interrupt, { decision: "approve", data: { replicas: 5 } });
  expect((await by(ann, "status")).stdout).toContain("1 for you");
  const lines = (await by(ann, "inbox")).stdout;
  expect(lines).toMatch(/asks +scout .*Scale it\? replicas 3 → 5 \(/);
});

test("approvals of other arguments are not voided unasked; one agrees by option, or on the terminal", async () => {
  const { id, ask, ann, bob, by, at, api } = await asked();
  expect((await by(bob, "approve", id, "--data", '{"replicas": 5}')).stdout).toContain("1 of 2");
  const plain = await by(ann, "approve", id);
  expect([plain.code, plain.stdout]).toEqual([64, ""]);
  expect(plain.stderr).toContain(`approver:bob approved ${id} with changes: replicas 3 → 5`);
  expect(plain.stderr).toContain("--as-voted");
  expect((await by(ann, "approve", "--all", "--yes")).stderr).toContain("skipped 1");
  expect((await at(ann, "n\n", "approve", id)).code).toBe(64);
  const agreed = await at(ann, "y\n", "approve", id, "--text", "fine");
  expect([agreed.stdout, agreed.code]).toEqual([`approved ${id}\n`, 0]);
  const { history } = (await api.get(id)).body;
  expect(history.at(-1)).toMatchObject({ parts: [{ text: "fine" }, { data: { replicas: 5 } }] });

  const [lease] = (await api.lease("scout")).body.leases;
  await api.reply(lease.lease_id);

  const next = await ask();
  await by(bob, "approve", next.id, "--data", '{"replicas": 5}');
  const voiding = await by(ann, "approve", next.id, "--as-proposed");
  expect(voiding.stdout).toContain("1 of 2 approvals");
  expect(voiding.stderr).toContain("this voids the earlier approval of approver:bob");
  await by(bob, "approve", next.id, "--data", '{"replicas": 7}', "--yes");
  expect((await by(ann, "approve", next.id, "--as-voted")).stdout).toBe(`approved ${next.id}\n`);
});

test("'errand answer' voids approvals as little as 'errand approve'", async () => {
  const { id, ann, bob, by, at } = await asked();
  await by(bob, "approve", id, "--data", '{"replicas": 5}');
  const plain = await by(ann, "answer", id, "--decision", "approve");
  expect([plain.code, plain.stdout]).toEqual([64, ""]);
  expect(plain.stderr).toContain(`approver:bob approved ${id} with changes: replicas 3 → 5`);
  const other = await by(ann, "answer", id, "--decision", "approve", "--data", '{"replicas": 7}');
  expect([other.code, other.stdout]).toEqual([64, ""]);
  expect(other.stderr).toContain("this voids the approval of approver:bob (replicas 3 → 5)");
  expect((await at(ann, "n\n", "answer", id, "--decision", "approve")).code).toBe(64);
  expect((await at(ann, "approve\nn\n", "answer", id)).stderr).toContain("this voids the approval");
  const voiding = await by(ann, "answer", id, "--as-proposed");
  expect(voiding.stdout).toContain("1 of 2 approvals");
  expect(voiding.stderr).toContain("this voids the earlier approval of approver:bob");
  await by(bob, "answer", id, "--decision", "approve", "--data", '{"replicas": 5}', "--yes");
  expect((await by(ann, "answer", id, "--as-voted", "fine")).stdout).toBe(`answered ${id}\n`);
});

test("who approves the same keeps a file and a text, and says nothing beside a chosen option", async () => {
  const { id, ask, api, ann, bob, by, at, dir } = await asked();
  const file = join(dir, "why.txt");
  writeFileSync(file, "because");
  await by(bob, "approve", id, "--data", '{"replicas": 5}');
  const asking = await at(ann, "y\n", "answer", id, "fine", "--decision", "approve", "--attach", file);
  expect([asking.stdout, asking.code]).toEqual([`answered ${id}\n`, 0]);
  const { parts } = (await api.get(id)).body.history.at(-1);
  expect(parts).toMatchObject([{ text: "fine" }, { filename: "why.txt" }, { data: { replicas: 5 } }]);

  const [lease] = (await api.lease("scout")).body.leases;
  await api.reply(lease.lease_id);
  const next = await ask({ ...SCALE, options: ["approve", "deny", "later"] });
  await bob.answer(next.id, next.interrupt, { text: "later" });
  const { code, stdout, stderr } = await by(ann, "answer", next.id, "--as-voted", "fine");
  expect([code, stdout]).toEqual([64, ""]);
  expect(stderr).toContain("a comment would make it another answer than that of approver:bob: later");
  expect((await by(ann, "answer", next.id, "--as-voted")).stdout).toBe(`answered ${next.id}\n`);
});

test("an approval with other arguments does not void a plain one unasked", async () => {
  const { id, ann, bob, by, at } = await asked();
  await by(bob, "approve", id);
  const data = ["--data", '{"replicas": 5}'];
  const refused = await by(ann, "approve", id, ...data);
  expect([refused.code, refused.stdout]).toEqual([64, ""]);
  expect(refused.stderr).toContain("this voids the approval of approver:bob");
  expect(refused.stderr).toContain("--yes");
  expect((await at(ann, "n\n", "approve", id, ...data)).stdout).toBe("");
  expect((await by(ann, "approve", id, "--data", '{"replicas": 3}')).stdout).toBe(`approved ${id}\n`);
});

test("who changes only an approval of their own is not asked", async () => {
  const { id, ann, by } = await asked();
  await by(ann, "approve", id);
  expect((await by(ann, "approve", id, "--data", '{"replicas": 5}')).stdout).toContain("1 of 2 approvals");
  expect((await by(ann, "approve", id, "--data", '{"replicas": 6}', "--yes")).code).toBe(0);
});

test("an approval of one's own, by another token, is never called voided", async () => {
  const { api, url, ann, by, at } = await asked({ needed: 3 });
  const caller = await as(url, "caller:ann");
  const id = String((await caller.delegate("scout")).body.id);
  const [lease] = (await api.lease("scout")).body.leases;
  await api.interrupt(lease.lease_id, SCALE);
  const data = (replicas: number) => ["--data", JSON.stringify({ replicas })];
  await by(ann, "approve", id, ...data(5));
  const runs = [
    await at(caller, "approve\n", "answer", id),
    await by(ann, "approve", id, ...data(6)),
    await by(caller, "approve", id),
    await by(ann, "approve", "--all", "--yes", ...data(7)),
    await by(caller, "answer", id, "--decision", "approve"),
  ];
  for (const { code, stdout, stderr } of runs)
    expect([code, stdout, stderr]).toEqual([
      0,
      expect.stringContaining("1 of 3 approvals"),
      expect.not.stringContaining("voids"),
    ]);
});

test("a decision is no answer to several requests, whatever others have approved", async () => {
  const { id, ask, api, ann, bob, by } = await asked();
  const { kind, ...scale } = SCALE;
  await api.cancel(id);
  const requests = ["a", "b"].map((request_id) => ({ ...scale, request_id }));
  const several = await ask({ kind, requests });
  const approve = { decision: "approve" };
  await bob.call("POST", `/v1/delegations/${several.id}/answer`, {
    interrupt_id: several.interrupt,
    answers: { a: { ...approve, data: { replicas: 5 } }, b: approve },
  });
  for (const more of [[], ["--data", '{"replicas": 7}']]) {
    const refused = await by(ann, "approve", several.id, ...more);
    expect([refused.code, refused.stderr]).toEqual([
      64,
      expect.stringContaining("asks 2 things at once: a, b"),
    ]);
    expect(refused.stderr.replaceAll(/\s+/g, " ")).toContain(`'errand answer ${several.id} --as-voted'`);
    const answered = await by(ann, "answer", several.id, "--decision", "approve", ...more);
    expect([answered.code, answered.stdout]).toEqual([64, ""]);
    expect(answered.stderr).toContain("Answer all of them at once");
  }
  expect((await by(ann, "answer", several.id, "--as-voted")).stdout).toBe(`answered ${several.id}\n`);
});

test("--all leaves to others what one's approval does not count for", async () => {
  const { id, ann, bob, by } = await asked({ by: ["approver:bob"] });
  const left = await by(ann, "approve", "--all", "--yes");
  expect([left.code, left.stdout]).toEqual([0, ""]);
  expect(left.stderr).toContain("left 1 to others, because your approval does not count");
  expect((await by(ann, "deny", "--all", "--yes", "--target", "other")).stderr).toContain("nothing to deny");
  expect((await by(bob, "approve", "--all", "--yes")).stdout).toBe(`approved ${id}\n`);
});

test("the prompt shows what others have approved, and 'agree' approves the same", async () => {
  const { id, ann, bob, by, at } = await asked();
  await by(bob, "approve", id, "--data", '{"replicas": 5}');
  const { stdout, stderr } = await at(ann, "agree\n", "answer", id);
  expect(stderr).toContain("1 of 2 approvals: approver:bob, with replicas 3 → 5");
  expect(stderr).toContain("'agree' to approve the same as approver:bob");
  expect(stdout).toBe(`answered ${id}\n`);
});

test("during a wait, who approves is not asked again at once, and the wait goes on with the last approval", async () => {
  const { id, interrupt, api, url, ann, bob } = await asked();
  const typed = runHere(["get", id, "--wait"], {
    env: { url, token: ann.token },
    stdin: "approve\n",
    tty: { stderr: true },
  });
  const given = async () => (await api.get(id)).body.interrupt?.votes?.given.length === 1;
  await expect.poll(given, { timeout: 20_000 }).toBe(true);
  await bob.answer(id, interrupt, { decision: "approve" });
  const [lease] = (await api.lease("scout", { wait_seconds: 5 })).body.leases;
  await api.reply(lease.lease_id, { text: "scaled" });
  const { code, ...ended } = await typed;
  const stderr = ended.stderr.replaceAll(/\s+/g, " ");
  expect([code, stderr]).toEqual([0, expect.stringContaining("1 of 2 approvals; the question stays open")]);
  expect(stderr.match(/answer \(/g)).toHaveLength(1);
});

test("an approval that does not count is refused with what to do", async () => {
  const { id, ann, by } = await asked({ by: ["approver:bob"] });
  const { code, stderr } = await by(ann, "approve", id);
  expect(code).toBe(77);
  expect(stderr).toContain("The approval of approver:ann does not count for agent 'scout'.");
  expect(stderr).toContain("Deny it, or leave it to those whose approvals count");
});

test("the options of an agent set, show and reset whose approvals it needs", async () => {
  const { run } = await setup();
  const options = ["--votes", "2", "--votes-by", "approver:*", "--votes-not-by-delegator"];
  const later = ["--votes-remind", "10m", "--votes-escalate", "1h", "--votes-escalate-to", "operator"];
  const put = await run(["agent", "put", "scout", ...options, ...later]);
  expect(put.stdout.replaceAll(/\s+/g, " ")).toContain(
    "2 approvals, by approver:*, not by the delegator, reminded every 10 min, after 1 h also by operator",
  );
  const votesOf = async () => JSON.parse((await run(["agent", "get", "scout", "--json"])).stdout).votes;
  expect(await votesOf()).toMatchObject({ needed: 2, remind_seconds: 600, escalate_to: ["operator"] });
  await run(["agent", "put", "scout", "--reset", "votes.not_by_delegator", "votes.by", "--votes", "3"]);
  expect(await votesOf()).toMatchObject({
    needed: 3,
    by: ["*"],
    not_by_delegator: false,
    remind_seconds: 600,
  });
  await run(["agent", "put", "scout", "--reset", "votes", "--votes", "2"]);
  expect(await votesOf()).toMatchObject({ needed: 2, remind_seconds: null, escalate_to: [] });
  await run(["agent", "put", "scout", "--reset", "votes"]);
  expect(await votesOf()).toBe(null);
});

test("whose approval does not count is shown only how to deny, and told so of a rule", async () => {
  const { id, ann, bob, by, api } = await asked({ by: ["approver:bob"] });
  const row = (text: string) => text.replaceAll(/\s+/g, " ");
  expect(row((await by(ann, "get", id)).stdout)).toContain(
    `answer with 'errand deny ${id}', only to deny it: your approval does not count`,
  );
  expect((await by(ann, "inbox")).stdout).toMatch(/deny only +scout/);
  expect((await by(bob, "get", id)).stdout).toContain(`'errand approve ${id}'`);
  expect((await by(bob, "inbox")).stdout).toMatch(/asks +scout/);
  const rule = await by(ann, "rules", "create", "scout", "scale");
  expect([rule.code, row(rule.stderr)]).toEqual([0, expect.stringContaining("this rule approves nothing")]);
  expect((await by(bob, "rules", "create", "scout", "scale")).stderr).not.toContain("approves nothing");
  await api.call("PATCH", "/v1/agents/scout", { votes: null });
  expect((await by(ann, "rules", "create", "scout", "scale")).stderr).not.toContain("approves nothing");
});

test("an escalation counts by the broker's clock, and the open inbox follows the time and the agent's votes", async () => {
  const escalation = { escalate_seconds: 3600, escalate_to: ["approver:*"] };
  const { id, url, ann, by, api, clock } = await asked({ by: ["approver:bob"], ...escalation });
  let now = clock.offset_ms + Date.now();
  const counted = new Counted({ url, token: ann.token }, "approver:ann", () => now);
  const scope = { principal: "approver:ann", since: new Date().toISOString(), counted };
  const live = new LiveInbox({ url, token: ann.token }, scope, () => undefined);
  const done = new AbortController();
  const running = live.run(done.signal).catch(() => undefined);
  const first = () => [live.entries[0]?.id, live.entries[0]?.denyOnly, live.entry(id)?.denyOnly];
  await expect.poll(first).toEqual([id, true, true]);
  now += 3_600_000;
  expect(first()).toEqual([id, undefined, undefined]);
  done.abort();
  await running;

  const screen = screenHere(["inbox"], { env: { url, token: ann.token } });
  await screen.shows(/deny only +scout/);
  await api.call("PATCH", "/v1/agents/scout", { votes: { by: ["approver:ann"] } });
  screen.type("a");
  await screen.shows("approve scale? With a comment or without:");
  await screen.shows("Your approval may not count", false);
  screen.type("\u001b", "q");
  await screen.shows(/asks +scout/);
  screen.type("q");
  expect(await screen.done).toBe(0);

  await api.call("PATCH", "/v1/agents/scout", { votes: { by: ["approver:bob"] } });
  clock.offset_ms += 3_660_000;
  expect((await by(ann, "inbox")).stdout).toMatch(/asks +scout/);
  expect((await by(ann, "get", id)).stdout).toContain(`'errand approve ${id}'`);
});

test("that an agent's votes could not be read is not remembered", async () => {
  const { url, ann, api, id } = await asked({ by: ["approver:bob"] });
  let isAway = true;
  const away = () => Promise.resolve(new Response("", { status: 500 }));
  const fetch: typeof globalThis.fetch = (...call) => (isAway ? away() : globalThis.fetch(...call));
  const counted = new Counted({ url, token: ann.token, fetch, retryForMs: 0 }, "approver:ann", Date.now);
  const asking = (await api.get(id)).body;
  await counted.read([asking]);
  expect(counted.isCounted(asking)).toBe(true);
  isAway = false;
  await counted.read([asking]);
  expect(counted.isCounted(asking)).toBe(false);
});

test("the history marks approvals that count no longer, and shows the open question once", async () => {
  const { id, interrupt, ann, bob, by } = await asked();
  await ann.answer(id, interrupt, { decision: "approve", text: "as it is" });
  await bob.answer(id, interrupt, { decision: "approve", data: { replicas: 5 } });
  const shown = (await by(ann, "get", id)).stdout;
  expect(shown).toMatch(/^answer +by approver:ann at .*"as it is" \(no longer counts\)$/m);
  expect(shown).toMatch(/^answer +by approver:bob at .*\{"replicas":5\}$/m);
  expect(shown).not.toMatch(/^question /m);
  expect((await by(ann, "get", id, "--history")).stdout.match(/no longer counts/g)).toHaveLength(1);
  await ann.answer(id, interrupt, { decision: "approve", data: { replicas: 5 } });
  expect((await by(ann, "get", id, "--history")).stdout.match(/no longer counts/g)).toHaveLength(1);
});

test("only the open question is hidden of two with the same messageId", async () => {
  const { run, api } = await setup();
  await api.agent("scout");
  const { id } = (await api.delegate("scout")).body;
  const message = { messageId: "same", role: "ROLE_AGENT" };
  for (const text of ["First?", "Second?"]) {
    const [lease] = (await api.lease("scout")).body.leases;
    const question = { kind: "input", request_id: text, message: { ...message, parts: [{ text }] } };
    const { interrupt_id } = (await api.interrupt(lease.lease_id, question)).body;
    if (text === "First?") await api.answer(id, interrupt_id, { text: "yes" });
  }
  const { stdout } = await run(["get", id]);
  expect(stdout).toMatch(/^question +First\?$/m);
  expect(stdout).toMatch(/^asks +Second\?$/m);
  expect(stdout).not.toMatch(/^question +Second\?$/m);
});

test("a question that expired says how many had approved, and that nobody was notified", async () => {
  const { id, interrupt, ann, by, gateway, clock, api } = await asked();
  await ann.answer(id, interrupt, { decision: "approve" });
  clock.offset_ms += 86_460_000;
  await gateway.sweep.tick();
  expect(whyClosed((await api.get(id)).body, { id: interrupt })).toBe("it has expired");
  const shown = (await by(ann, "get", id)).stdout;
  expect(shown).toMatch(/^approvals +1 of 2 approvals: approver:ann$/m);
  expect(shown).toMatch(
    /^error +interrupt_expired: .* 1 of 2 approvals within 1 d\. Nobody was notified of it\.$/m,
  );
  const row = (await by(ann, "answers")).stdout;
  expect(row).toMatch(/nobody +- +expired \(1 of 2/);
});
