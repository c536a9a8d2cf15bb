/**
 * One scene with two Claude Codes, the console and an hour: A delegates by MCP to B, which works with `--preset claude`. B
 * wants to run a command. Its worker is killed while the question is open. An hour later a person approves another command in
 * the console, another worker goes on, and A has the result.
 */
import type { ChildProcess } from "node:child_process";
import { until } from "../support/until.ts";
import type { Subject } from "./bench.ts";
import type { SceneBroker } from "./scene-broker.ts";
import type { ConsoleOfPerson } from "./scene-console.ts";
import { DelegatingClaude } from "./scene-delegator.ts";
import type { SceneStep } from "./scene-results.ts";

const HOUR = 3_600;
const STICKY = 30;
/** Whoever sees the picture of the console should see who asks. */
const AGENT = "claude-code";
const TASK = "Deploy version 2.4.1 of search to production";
const COMMAND = "./deploy.sh search 2.4.1 --to production";
const EDITED = "./deploy.sh search 2.4.1 --to staging";
const DONE = "search 2.4.1 is on staging";
/** What the command leaves behind: one line for each time that it ran. */
const TRACE = "deployed.txt";
const SCRIPT = `#!/bin/sh\necho "$*" >> ${TRACE}\necho "$1 $2 is on $4"\n`;

interface Cast {
  readonly subject: Subject;
  readonly broker: SceneBroker;
  readonly person: ConsoleOfPerson;
  /** The tokens of A's caller, of B's workers and of the person. */
  readonly tokens: Readonly<Record<"caller" | "agent" | "approver", string>>;
}

/** Creates the agent, and the tokens of all who act. */
export async function tokensOf(subject: Subject): Promise<Cast["tokens"]> {
  await subject.raw(`/v1/agents/${AGENT}`, { method: "PUT", body: "{}" });
  const of = async (principal: string) => {
    const body = JSON.stringify({ principal });
    return String((await subject.raw("/v1/tokens", { method: "POST", body })).token);
  };
  return {
    caller: await of("caller:alice"),
    agent: await of(`agent:${AGENT}`),
    approver: await of("approver:ann"),
  };
}

/**
 * `ask`: how B waits for the person. `onHour` is called when the question has been open for an hour. Throws an error that says
 * what is wrong.
 */
export async function scene(
  { subject, broker, person, tokens }: Cast,
  ask: "hold" | "park",
  saw: (step: SceneStep, what: string) => void,
  onHour: () => Promise<void>,
): Promise<void> {
  subject.write("deploy.sh", SCRIPT, 0o755);
  subject.write(TRACE);
  const { meanings } = subject.bench.model;
  const call = JSON.stringify({ command: COMMAND, description: "Deploy search 2.4.1" });
  meanings.set(TASK, `call: Bash ${call}`);
  const work = (): ChildProcess => subject.work(AGENT, ["--ask", ask], tokens.agent);

  const first = work();
  const a = new DelegatingClaude(subject, tokens.caller);
  const id = await a.delegate(AGENT, TASK);
  const { request } = await subject.question(id);
  const { command } = Object(request.action?.arguments);
  expect(command === COMMAND, `B asks for another command: ${command}`);
  saw("asked", `A has delegated by MCP, and B asks for: ${command}`);

  const inbox = await subject.errand(["inbox", "--json"], tokens.approver);
  expect(inbox.includes(JSON.stringify(COMMAND)), `errand inbox does not show the command: ${inbox}`);
  const left = await person.shows(COMMAND);
  saw("shown", `errand inbox and the console show exactly this command; ${left}`);

  // While a question is held, the killed worker has the lease. A parked question has none.
  const isHeld = (await subject.delegator.get(id)).lease !== null;
  expect(isHeld === (ask === "hold"), `the question is ${isHeld ? "held" : "parked"}`);
  first.kill("SIGKILL");
  await broker.pass(HOUR);
  await person.pass(HOUR);
  const { lease, state } = await subject.delegator.get(id);
  expect(lease === null && state === "input_required", `after an hour it is ${state}`);
  const later = await person.shows(COMMAND);
  expect(later !== left, "no time has passed in the console");
  saw("hour", `the worker is killed, an hour passes, and the question is still open; ${later}`);
  await onHour();

  const waiting = a.waits();
  await until(() => a.isWaiting(), { what: "A's wait" });
  await person.approveEdited(COMMAND, EDITED);
  saw("approved", `a person approves in the console: ${EDITED}`);
  // For so long, the broker keeps a parked call for the worker that has the conversation, which is dead.
  await broker.pass(STICKY);
  const second = work();
  const done = await subject.ended(id);
  expect(done.state === "completed", `it is not completed: ${JSON.stringify(done.error)}`);
  const ran = subject.read(TRACE);
  expect(ran === `${EDITED.slice("./deploy.sh ".length)}\n`, `these ran: ${ran}`);
  saw("once", "another worker goes on: the edited command ran once, the original one never");

  const got = await waiting;
  expect(got.includes(DONE), `A does not have the result: ${got}`);
  saw("result", `A has the result: ${DONE}`);
  await subject.stop(second);
}

function expect(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}
