/** The processes of an agent: one for each slot, started when it is needed, and used again. */
import { AgentProcess, type ProcessSetup } from "./agent-process.ts";

export class Pool {
  readonly #setup: ProcessSetup;
  readonly #idle = new Set<AgentProcess>();
  readonly #all = new Set<AgentProcess>();
  #isClosed = false;

  constructor(setup: ProcessSetup) {
    this.#setup = setup;
  }

  /** Preferably the process that has the conversation open. */
  async take(sessionId: string | undefined, signal: AbortSignal): Promise<AgentProcess> {
    const usable = [...this.#idle].filter(({ isUsable }) => isUsable);
    const found =
      usable.find(({ sessions }) => sessionId !== undefined && sessions.has(sessionId)) ?? usable[0];
    for (const agent of this.#all) {
      if (!agent.isUsable) this.#forget(agent);
      // Another process continues the conversation, so what this one has of it will be old.
      else if (agent !== found && sessionId !== undefined) agent.sessions.delete(sessionId);
    }
    if (found) {
      this.#idle.delete(found);
      return found;
    }
    const agent = await AgentProcess.start(this.#setup, signal);
    this.#all.add(agent);
    if (this.#isClosed) await agent.end();
    return agent;
  }

  /** The slot needs it no more for now. */
  give(agent: AgentProcess): void {
    agent.onOutput = () => undefined;
    if (agent.isUsable && !this.#isClosed) this.#idle.add(agent);
    else this.#forget(agent);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#all].map((agent) => agent.end()));
  }

  #forget(agent: AgentProcess): void {
    this.#all.delete(agent);
    this.#idle.delete(agent);
  }
}
