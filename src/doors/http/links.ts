/** Absolute addresses that the broker hands out, from its public URL. Limit: of what a caller names they hold an agent's name alone. */
import { withoutTrailingSlashes } from "../../schema/text.ts";

/** Where an agent is an A2A server; with the slash, so that a card's path resolves under it. */
export const a2aUrl = (publicUrl: string, agent: string): string =>
  `${withoutTrailingSlashes(publicUrl)}/a2a/${agent}/`;

export const a2aCardUrl = (publicUrl: string, agent: string): string =>
  `${a2aUrl(publicUrl, agent)}.well-known/agent-card.json`;
