/** The rows of the matrix: what a program is tried with, and what must come of it. */
import { readdirSync, readFileSync } from "node:fs";
import type { Delegation } from "../../src/schema/delegation.ts";
import { until } from "../support/until.ts";
import { briefly, type Subject } from "./bench.ts";
import { delegated } from "./delegating.ts";
import type { CellName } from "./names.ts";

/** What is in the table: true is a plain yes. */
export type Result = true | string;

export interface Cell {
  readonly title: string;
  readonly run: (subject: Subject, agent: string, note: (id: string) => void) => Promise<Result>;
}

function expect(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}

const said = ({ reply }: Delegation): string =>
  (reply?.parts ?? []).map((part) => ("text" in part ? part.text : "")).join("");

function completed(delegation: Delegation): void {
  expect(delegation.state === "completed", `it is not completed: ${briefly(delegation)}`);
}

/** One line for each time that the command ran. */
const countOf = (subject: Subject, name: string): number => subject.read(name).split("\n").length - 1;

/** Approves each question as it is, until the end. */
async function approving(subject: Subject, id: string, before?: string): Promise<Delegation> {
  for (let last = before; ; ) {
    const next = await subject.next(id, last);
    if ("state" in next) return next;
    last = next.id;
    await subject.delegator.approve(id);
  }
}

/** The arguments with another command, whatever the agent calls it. */
function edited(args: Readonly<Record<string, unknown>>, command: string): Record<string, unknown> {
  const name = ["command", "cmd", "title"].find((key) => key in args) ?? "command";
  const before = args[name];
  return { ...args, [name]: Array.isArray(before) ? [...before.slice(0, -1), command] : command };
}

async function paused(subject: Subject, agent: string, id: string, words: RegExp): Promise<Result> {
  const reason = await until(
    async () => {
      const found = await subject.delegator.get(id);
      expect(!["completed", "failed"].includes(found.state), `it ended: ${briefly(found)}`);
      const { presence } = await subject.raw(`/v1/agents/${agent}`);
      const why: unknown = Object(presence).paused?.reason;
      return typeof why === "string" ? why : undefined;
    },
    { what: "a pause", timeoutMs: 10 * 60_000 },
  );
  expect(words.test(reason), `it pauses for another reason: ${reason}`);
  const { attempt, state } = await subject.delegator.get(id);
  expect(state === "submitted" && attempt === 1, `it is ${state}, attempt ${attempt}`);
  return true;
}

export const CELLS: Readonly<Record<CellName, Cell>> = {
  answer: {
    title: "answers",
    run: async (subject, agent, note) => {
      const id = await subject.delegate(agent, "[[say: All is well.]]");
      note(id);
      const done = await subject.ended(id);
      completed(done);
      expect(said(done) === "All is well.", `it said: ${said(done)}`);
      return true;
    },
  },
  approved: {
    title: "a tool call is asked for, and approved",
    run: async (subject, agent, note) => {
      const id = await subject.delegate(agent, "[[run: echo ran >> approved.txt]]");
      note(id);
      const { request } = await subject.question(id);
      expect(JSON.stringify(request).includes("approved.txt"), "the question does not show the command");
      expect(!subject.has("approved.txt"), "the command ran before it was approved");
      await subject.delegator.approve(id);
      completed(await subject.ended(id));
      expect(countOf(subject, "approved.txt") === 1, "the command did not run once");
      return true;
    },
  },
  denied: {
    title: "… denied",
    run: async (subject, agent, note) => {
      const id = await subject.delegate(agent, "[[run: echo ran >> denied.txt]]");
      note(id);
      await subject.question(id);
      await subject.delegator.deny(id, { text: "Not today." });
      await subject.ended(id);
      expect(!subject.has("denied.txt"), "the command ran");
      return true;
    },
  },
  edited: {
    title: "… approved with other arguments",
    run: async (subject, agent, note) => {
      const id = await subject.delegate(agent, "[[run: echo ran >> original.txt]]");
      note(id);
      const { id: first, request } = await subject.question(id);
      const data = edited(request.action?.arguments ?? {}, "echo ran >> edited.txt");
      await subject.delegator.approve(id, { data });
      const done = await subject.next(id, first);
      const isAsked = !("state" in done);
      completed(isAsked ? await approving(subject, id, first) : done);
      expect(!subject.has("original.txt"), "the original command ran");
      expect(countOf(subject, "edited.txt") === 1, "the edited command did not run once");
      return isAsked ? "denied, with the new arguments; asked again" : true;
    },
  },
  held: {
    title: "the process waits for the answer",
    run: async (subject, agent, note) => {
      const id = await subject.delegate(agent, "[[run: echo ran >> held.txt]]");
      note(id);
      const { isHeld } = await subject.question(id);
      expect(isHeld, "the lease ended with the question");
      const worker = (await subject.delegator.get(id)).lease?.worker_id;
      await subject.delegator.approve(id);
      await until(() => subject.has("held.txt"), { what: "the command" });
      const { lease, attempt } = await subject.delegator.get(id);
      expect(lease === null || lease.worker_id === worker, "another worker has it");
      expect(attempt === 1, "it is another attempt");
      completed(await subject.ended(id));
      return true;
    },
  },
  parked: {
    title: "parked, and answered later",
    run: async (subject, agent, note) => {
      const own = `${agent}-parked`;
      const worker = subject.work(own, ["--ask", "park"]);
      const id = await subject.delegate(own, "[[run: echo ran >> parked.txt]]");
      note(id);
      const { isHeld, id: first } = await subject.question(id);
      expect(!isHeld, "the question is held");
      await until(async () => (await subject.delegator.get(id)).lease === null, {
        what: "the end of the lease",
      });
      await subject.delegator.approve(id);
      const done = await subject.next(id, first);
      const isAsked = !("state" in done);
      completed(isAsked ? await approving(subject, id, first) : done);
      expect(countOf(subject, "parked.txt") === 1, "the command did not run once");
      await subject.stop(worker);
      return isAsked ? "asked again" : true;
    },
  },
  killed: {
    title: "a worker is killed (-9) while it asks, another goes on",
    run: async (subject, agent, note) => {
      const own = `${agent}-killed`;
      const first = subject.work(own);
      const id = await subject.delegate(own, "[[run: echo ran >> killed.txt]]");
      note(id);
      const { id: question } = await subject.question(id);
      first.kill("SIGKILL");
      const second = subject.work(own);
      // The broker notices by the lease.
      await until(async () => (await subject.delegator.get(id)).lease === null, {
        what: "the end of the lease",
      });
      await subject.delegator.approve(id);
      const done = await subject.next(id, question);
      const isAsked = !("state" in done);
      completed(isAsked ? await approving(subject, id, question) : done);
      expect(countOf(subject, "killed.txt") === 1, "the command did not run once");
      await subject.stop(second);
      return isAsked ? "asked again" : true;
    },
  },
  continued: {
    title: "the next delegation continues the conversation",
    run: async (subject, agent, note) => {
      const context_id = `conversation-${agent}`;
      const first = await subject.delegate(agent, "[[say: The first thing.]]", { context_id });
      note(first);
      completed(await subject.ended(first));
      const second = await subject.delegate(agent, "[[recall]]", { context_id });
      note(second);
      const done = await subject.ended(second);
      expect(said(done).includes("The first thing."), `it does not remember: ${briefly(done)}`);
      return true;
    },
  },
  cancel: {
    title: "canceled during a tool call",
    run: async (subject, agent, note) => {
      const seconds = `3${Date.now() % 100_000}`;
      const id = await subject.delegate(agent, `[[run: echo ran >> started.txt; sleep ${seconds}]]`);
      note(id);
      await subject.question(id);
      await subject.delegator.approve(id);
      await until(() => subject.has("started.txt"), { what: "the command" });
      await subject.delegator.cancel(id);
      const done = await subject.ended(id);
      expect(done.state === "canceled", `it is ${done.state}`);
      await until(() => !runs(`sleep\0${seconds}`), { what: "the end of the command", timeoutMs: 30_000 });
      const next = await subject.delegate(agent, "[[say: Next.]]");
      note(next);
      completed(await subject.ended(next));
      return true;
    },
  },
  files: {
    title: "files, both ways",
    run: async (subject, agent, note) => {
      const text = "a line of the file\n";
      const parts = [
        { text: "[[run: cp FILE BACK/copy.txt]]" },
        { raw: Buffer.from(text).toString("base64"), filename: "notes.txt", mediaType: "text/plain" },
      ];
      const { id } = await subject.delegator.delegate({ target: agent, message: { parts } });
      note(id);
      const done = await approving(subject, id);
      completed(done);
      const copy = done.artifacts.find(({ name }) => name === "copy.txt");
      const [part] = copy?.parts ?? [];
      const came =
        part &&
        ("text" in part ? part.text : "raw" in part ? Buffer.from(part.raw ?? "", "base64").toString() : "");
      expect(came === text, `no such artifact: ${JSON.stringify(done.artifacts)}`);
      return true;
    },
  },
  followed: {
    title: "a follow-up reaches it",
    run: async (subject, agent, note) => {
      const id = await subject.delegate(
        agent,
        "[[run: echo ran >> waits.txt; until test -e go.txt; do sleep 0.2; done]]",
      );
      note(id);
      await subject.question(id);
      await subject.delegator.approve(id);
      await until(() => subject.has("waits.txt"), { what: "the command" });
      const before = (await subject.delegator.get(id)).lease?.expires_at;
      await subject.delegator.message(id, "[[say: The follow-up came.]]");
      // The next heartbeat begins when the worker has got the message.
      await until(async () => (await subject.delegator.get(id)).lease?.expires_at !== before, {
        what: "a heartbeat",
      });
      subject.write("go.txt");
      const done = await subject.ended(id);
      completed(done);
      expect(said(done).includes("The follow-up came."), `it said: ${said(done)}`);
      return true;
    },
  },
  limit: {
    title: "a limit of the provider (429) pauses the worker",
    run: async (subject, agent, note) => {
      const own = `${agent}-limit`;
      const worker = subject.work(own);
      const id = await subject.delegate(own, "[[fail: 429]]");
      note(id);
      const result = await paused(subject, own, id, /has reached its limit/);
      await subject.stop(worker);
      return result;
    },
  },
  signedOut: {
    title: "a key that is not valid (401) pauses the worker",
    run: async (subject, agent, note) => {
      const own = `${agent}-signed-out`;
      const worker = subject.work(own);
      const id = await subject.delegate(own, "[[fail: 401]]");
      note(id);
      const result = await paused(subject, own, id, /not signed in/);
      await subject.stop(worker);
      return result;
    },
  },
  usage: {
    title: "reports its usage",
    run: async (subject, agent, note) => {
      const id = await subject.delegate(agent, "[[say: Counted.]]");
      note(id);
      completed(await subject.ended(id));
      const { usage } = await subject.raw(`/v1/delegations/${id}`);
      if (usage === undefined || usage === null) return "not reported";
      expect(
        /"(?:input_tokens|input)":(?:11|22|33)\b/.test(JSON.stringify(usage)),
        `other numbers: ${JSON.stringify(usage)}`,
      );
      return true;
    },
  },
  delegates: {
    title: "delegates by MCP",
    run: async (subject, agent, note) => {
      const own = `${agent}-hears`;
      const worker = subject.workWith(own, ["sed", "s/^/heard: /"]);
      await until(async () => (await subject.raw(`/v1/agents/${own}`)).name === own, { what: own });
      const text = await delegated(subject, subject.preset, own);
      const { delegations } = await subject.raw(`/v1/delegations?target=${own}`);
      const [one] = Array.isArray(delegations) ? delegations : [];
      const { id, state } = Object(one);
      if (typeof id === "string") note(id);
      expect(state === "completed", `it delegated nothing that was done: ${text.slice(-600)}`);
      expect(text.includes("heard: hello"), `it did not get the result: ${text.slice(-600)}`);
      await subject.stop(worker);
      return true;
    },
  },
};

/** Whether a process with this in its command line runs. */
function runs(what: string): boolean {
  return readdirSync("/proc").some((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").startsWith(what);
    } catch {
      return false;
    }
  });
}
