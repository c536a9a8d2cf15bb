/** `errand delegate --wait` on a terminal: a question is answered where the wait runs. */
import { PassThrough } from "node:stream";
import { expect, onTestFinished, test } from "vitest";
import { client, OPERATOR, startBroker } from "../../support/broker.ts";
import { atTerminal } from "../../support/terminal.ts";
import { until } from "../../support/until.ts";
import { start } from "../fake-host.ts";

const TERMINAL = { stdin: true, stderr: true };
const flat = (text: string): string => text.replaceAll(/\s+/g, " ");
const CLEAR = "\r\u001b[2K";

/** A wait for an agent that asks, up to the prompt. */
async function prompted(question: Record<string, unknown> = { text: "Which branch?" }) {
  const { url } = await startBroker();
  const api = client(url);
  await api.agent("scout");
  const keyboard = new PassThrough();
  const run = start(["delegate", "scout", "go", "--wait"], {
    env: { url, token: OPERATOR },
    childEnv: { NO_COLOR: "1" },
    stdin: keyboard,
    tty: TERMINAL,
  });
  onTestFinished(() => void keyboard.destroy());
  const lease = async () => (await api.lease("scout", { wait_seconds: 60 })).body.leases[0];
  const { lease_id, delegation } = await lease();
  const asked = (await api.interrupt(lease_id, question)).body;
  await until(() => run.stderr().includes("answer ("), { what: "the prompt" });
  return { api, run, keyboard, lease, id: String(delegation.id), asked: String(asked.interrupt_id) };
}

test("it prompts, sends the answer, and goes on waiting for the reply", async () => {
  const { api, run, keyboard, lease, id } = await prompted();
  expect(run.stderr()).toMatch(/scout asks, open until 20.* \(an empty line leaves it open\):\n/);
  keyboard.write("main\n");
  const { lease_id, delegation } = await lease();
  expect(delegation.history.at(-1).parts).toEqual([{ text: "main" }]);
  await api.interrupt(lease_id, { text: "Sure?" });
  await until(() => run.stderr().includes("Sure?"), { what: "the second question" });
  keyboard.write("approve\n");
  const second = await lease();
  expect(second.delegation.history.at(-1).metadata.decision).toBe("approve");
  await api.reply(second.lease_id, { text: "built" });
  expect([await run.done, run.stdout()]).toEqual([0, "built\n"]);
  expect((await api.get(id)).body.state).toBe("completed");
});

test("an empty line leaves the question open, and says how to answer later", async () => {
  const { api, run, keyboard, id } = await prompted();
  keyboard.write("\n");
  expect([await run.done, run.stdout()]).toEqual([79, ""]);
  expect(flat(run.stderr())).toContain(`errand: ${id} asks: Which branch? The question is open until`);
  expect(run.stderr()).toContain(`'errand answer ${id} "…"'`);
  expect((await api.get(id)).body.state).toBe("input_required");
});

test("an answer from elsewhere ends the prompt, and the wait goes on", async () => {
  const { api, run, lease, id, asked } = await prompted();
  expect((await api.answer(id, asked, { text: "main" })).status).toBe(200);
  await until(() => run.stderr().includes("the question is not open any more: answered by operator."), {
    what: "the note",
  });
  await api.reply((await lease()).lease_id, { text: "built" });
  expect([await run.done, run.stdout()]).toEqual([0, "built\n"]);
});

test("after an answer from elsewhere, the next question is shown at Enter on an empty line", async () => {
  const { api, run, keyboard, lease, id, asked } = await prompted();
  await api.answer(id, asked, { text: "main" });
  await api.interrupt((await lease()).lease_id, { text: "Drop it?" });
  await until(() => run.stderr().includes("press Enter for the next question: "), { what: "the gate" });
  keyboard.write("approve\n");
  await until(() => run.stderr().split("press Enter").length === 3, { what: "the gate again" });
  expect(run.stderr()).not.toContain("Drop it?");
  keyboard.write("\n");
  await until(() => run.stderr().split("answer (").length === 3, { what: "the second prompt" });
  keyboard.write("deny\n");
  const { lease_id, delegation } = await lease();
  expect(delegation.history.at(-1).metadata.decision).toBe("deny");
  await api.reply(lease_id, { text: "kept" });
  expect([await run.done, run.stdout()]).toEqual([0, "kept\n"]);
});

test("on a real terminal, what was typed for a question that closed answers no other", async () => {
  const { url } = await startBroker();
  const api = client(url);
  await api.agent("scout");
  const { child, closed, screen } = atTerminal(["delegate", "scout", "go", "--wait"], {
    ERRAND_URL: url,
    ERRAND_TOKEN: OPERATOR,
  });
  const shows = (what: string) => until(() => screen().includes(what), { what });
  const ask = async (question: Record<string, unknown>) => {
    const [{ lease_id, delegation }] = (await api.lease("scout", { wait_seconds: 60 })).body.leases;
    const { interrupt_id } = (await api.interrupt(lease_id, question)).body;
    return [String(delegation.id), String(interrupt_id)] as const;
  };
  const [id, secret] = await ask({ kind: "auth", text: "Your token?" });
  await shows("(hidden text): ");
  child.stdin.write("s3cret");
  await api.answer(id, secret, { text: "other" });
  await shows("is not open any more");
  const [, first] = await ask({ text: "Which branch?" });
  await shows("press Enter for the next question: ");
  child.stdin.write("\r");
  await shows("Which branch?");
  await shows("or text): ");
  child.stdin.write("approve");
  await until(() => screen().endsWith("approve"), { what: "the echo" });
  await api.answer(id, first, { text: "main" });
  await until(() => screen().split("is not open any more").length === 3, { what: "the second note" });
  await ask({ text: "Drop it?" });
  await until(() => screen().split("press Enter").length === 3, { what: "the gate" });
  child.stdin.write("\r");
  await until(() => /Drop it\?.*or text\): /s.test(screen()), { what: "the last prompt" });
  child.stdin.write("\r");
  await closed;
  // An empty line: the question stays open, and nothing was sent.
  expect(child.exitCode).toBe(79);
  expect(screen()).not.toContain("s3cret");
  expect((await api.get(id)).body.state).toBe("input_required");
});

test("on a real terminal: the progress, the prompt, and Ctrl-C, which leaves the question open", async () => {
  const { url } = await startBroker();
  const api = client(url);
  await api.agent("scout");
  const { child, closed, screen } = atTerminal(["delegate", "scout", "go", "--wait"], {
    ERRAND_URL: url,
    ERRAND_TOKEN: OPERATOR,
  });
  const { lease_id, delegation } = (await api.lease("scout", { wait_seconds: 60 })).body.leases[0];
  await api.heartbeat(lease_id, { progress: { done: 1, total: 2, message: "half" } });
  await until(() => screen().includes("working [#####-----] 1/2 half"), { what: "the progress" });
  await api.interrupt(lease_id, { text: "Which branch?" });
  await until(() => screen().includes("or text): "), { what: "the prompt" });
  // The line is removed before the question is shown.
  expect(screen()).toContain(`${CLEAR}scout asks,`);
  child.stdin.write("\u0003");
  await closed;
  expect(child.exitCode).toBe(130);
  expect(flat(screen())).toContain("errand: the question stays open until ");
  expect(screen()).toContain(`'./errand answer ${delegation.id}`);
  expect((await api.get(delegation.id)).body.state).toBe("input_required");
});
