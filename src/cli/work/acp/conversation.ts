/**
 * The conversation of a delegation with an agent: continued by resume, else by load, else a new one. Limit: what an agent
 * calls a success may still be another conversation; nothing of the protocol shows that.
 */
import * as z from "zod";
import type { AgentProcess } from "./agent-process.ts";
import { METHODS } from "./connection.ts";
import { AgentEndedError } from "./errors.ts";
import { type ModeChoice, settingsFor } from "./mode.ts";
import { newSessionSchema, type Settings, settingsSchema } from "./schemas.ts";

export interface Conversation {
  readonly sessionId: string;
  /** The agent knows what was said before. */
  readonly isContinued: boolean;
  /** The worker does not know a mode of this agent in which it asks. */
  readonly hasUnknownMode: boolean;
}

interface Opening {
  readonly cwd: string;
  /** Folders besides it that the agent may use. */
  readonly folders: readonly string[];
  readonly choice: ModeChoice;
}

/** `known` is the id of the conversation to continue. */
export async function openConversation(
  agent: AgentProcess,
  known: string | undefined,
  { cwd, folders, choice }: Opening,
): Promise<Conversation> {
  const capabilities = agent.info.agentCapabilities?.sessionCapabilities;
  const place = {
    cwd,
    mcpServers: [],
    ...(capabilities?.additionalDirectories && { additionalDirectories: folders }),
  };
  const continued = known && (agent.sessions.get(known) ?? (await proceed(agent, known, place)));
  const { sessionId, ...begun } = continued
    ? { sessionId: known, ...continued }
    : await agent.request(newSessionSchema, METHODS.session.new, place);
  agent.sessions.set(sessionId, begun);
  const { settings, isUnknown } = settingsFor(begun, choice);
  for (const setting of settings) {
    if (setting.kind === "mode") {
      const { modeId } = setting;
      await agent.request(z.unknown(), METHODS.session.setMode, { sessionId, modeId });
    } else {
      const { configId, value } = setting;
      const typed = typeof value === "boolean" ? { type: "boolean", value } : { value };
      await agent.request(z.unknown(), METHODS.session.setConfigOption, { sessionId, configId, ...typed });
    }
  }
  return { sessionId, isContinued: Boolean(continued), hasUnknownMode: isUnknown };
}

/** Undefined if the agent cannot continue it, for whatever reason. */
async function proceed(agent: AgentProcess, sessionId: string, place: object): Promise<Settings | undefined> {
  const { loadSession, sessionCapabilities } = agent.info.agentCapabilities ?? {};
  const methods = [
    ...(sessionCapabilities?.resume ? [METHODS.session.resume] : []),
    ...(loadSession ? [METHODS.session.load] : []),
  ];
  for (const method of methods) {
    try {
      return await agent.request(settingsSchema, method, { sessionId, ...place });
    } catch (error) {
      if (error instanceof AgentEndedError) throw error;
    }
  }
  return undefined;
}
