/**
 * The demo: two agents that work in this page, for one task of the operator. It can be removed at any time; when the page
 * closes or the session ends, its agents are deleted, which cancels what is in progress. Only ended work is left then.
 */
import { effect, untracked } from "@preact/signals";
import { Agent } from "../../client/agent.ts";
import { randomKey } from "../../client/random-key.ts";
import type { AgentPatch } from "../../schema/agent.ts";
import { isTerminal } from "../../schema/delegation.ts";
import { readAgents } from "../data/agents.ts";
import type { Connection } from "../data/connection.ts";
import { clearOne, show } from "../data/delegations.ts";
import { session, type Unfinished, unfinished } from "../session/session.ts";
import { orGone } from "../ui/or-gone.ts";
import { checker, TASK, writer } from "./handlers.ts";
import { ABOUT, demo, nameOfDemo } from "./state.ts";

/** For how long it stays if nobody removes it. */
const LONGEST_MS = 1_800_000;
const SETTINGS: AgentPatch = {
  accepts_from: ["operator"],
  approvals: "person",
  limits: { max_attempts: 2, max_waiting: 5, max_working: 1, interrupt_ttl_seconds: LONGEST_MS / 1000 },
};

interface Running {
  readonly connection: Connection;
  readonly names: readonly string[];
  readonly workers: readonly Agent[];
  readonly end: () => void;
}
let running: Running | undefined;

/** Creates the agents, works as them, and delegates the task. Resolves with the id of the delegation. */
export async function startDemo(): Promise<string | undefined> {
  const connection = session.peek()?.connection;
  if (!connection || demo.peek() !== null) return undefined;
  demo.value = { phase: "starting", id: null };
  const random = randomKey().slice(0, 6);
  const [first, second] = [nameOfDemo("writer", random), nameOfDemo("checker", random)];
  const roles = [
    { name: first, what: "writes release notes", handler: writer(second) },
    { name: second, what: "checks links", handler: checker },
  ];
  const workers = roles.map(
    ({ name, handler }) =>
      new Agent(
        { ...connection.options, agent: name, workerId: `this-page-${random}`, stopWithinSeconds: 1 },
        handler,
      ),
  );
  const own: Running = { connection, names: [first, second], workers, end: endWith(connection) };
  running = own;
  /** Somebody removed the demo meanwhile: what was made after that goes, too. */
  const isRemoved = async (): Promise<boolean> => {
    if (running === own) return false;
    await removeAgents(connection, own.names);
    return true;
  };
  try {
    for (const { name, what } of roles) {
      await connection.admin.createAgent(name, { ...SETTINGS, description: `${ABOUT}: ${what}` });
      if (await isRemoved()) return undefined;
    }
    // They end when the agents are deleted, or with the session.
    for (const worker of workers) worker.run().catch(() => undefined);
    const delegation = await connection.delegator.delegate(
      { target: first, task: TASK },
      { ttlSeconds: LONGEST_MS / 1000 },
    );
    if (await isRemoved()) return undefined;
    demo.value = { phase: "running", id: delegation.id };
    show(delegation);
    void readAgents();
    return delegation.id;
  } catch (error) {
    await removeDemo().catch(() => undefined);
    throw error;
  }
}

/** Stops the workers, and deletes the agents and everything that was delegated to them. */
export async function removeDemo(): Promise<void> {
  const one = running;
  if (!one) return;
  demo.value = { phase: "removing", id: null };
  await Promise.all(one.workers.map((worker) => worker.stop()));
  await removeAgents(one.connection, one.names);
  forget();
  void readAgents();
}

/** Deletes agents of a demo, and what was delegated to them. */
export async function removeAgents(connection: Connection, names: readonly string[]): Promise<void> {
  const { admin, delegator, pages } = connection;
  for (const target of names) {
    // First, while the list still shows them.
    const { delegations } = await pages.list({ target, limit: 100 });
    await orGone(admin.deleteAgent(target, { force: true }));
    for (const { id } of delegations) {
      const { state } = await delegator.get(id);
      if (isTerminal(state)) await orGone(delegator.delete(id));
      clearOne(id);
    }
  }
}

/** Ends the demo with the page, with the session, and after a while. Returns what undoes that. */
function endWith(connection: Connection): () => void {
  const leave = async (): Promise<void> => {
    const { workers = [], names = [] } = running ?? {};
    forget();
    for (const worker of workers) void worker.stop();
    // At once: the page may have no time for more.
    await Promise.allSettled(names.map((name) => connection.admin.deleteAgent(name, { force: true })));
  };
  const onLeave = () => void leave();
  const last: Unfinished = { finish: leave, settle: leave, hold: () => () => undefined };
  const timer = setTimeout(() => void removeDemo().catch(() => undefined), LONGEST_MS);
  addEventListener("pagehide", onLeave);
  unfinished.add(last);
  const quiet = effect(() => {
    if (session.value?.connection !== connection) void untracked(leave);
  });
  return () => {
    clearTimeout(timer);
    removeEventListener("pagehide", onLeave);
    unfinished.delete(last);
    quiet();
  };
}

function forget(): void {
  running?.end();
  running = undefined;
  demo.value = null;
}
