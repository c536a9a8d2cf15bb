/** Absolute URLs of the broker's resources, built from its public URL. */
import { withoutTrailingSlashes } from "../../schema/text.ts";

/** A path of the broker below that of its public URL, for links without scheme and host. */
export const publicPath = (publicUrl: string, path: `/${string}`): string =>
  `${withoutTrailingSlashes(new URL(publicUrl).pathname)}${path}`;

/** The A2A server of an agent. It ends in a slash, so that clients resolve the card's relative path below it. */
export const a2aUrl = (publicUrl: string, agent: string): string =>
  `${withoutTrailingSlashes(publicUrl)}/a2a/${agent}/`;

/** An agent's card in the form of one version of A2A. */
export const pureCardUrl = (publicUrl: string, agent: string, version: string): string =>
  `${a2aUrl(publicUrl, agent)}cards/${version}.json`;

export const a2aCardUrl = (publicUrl: string, agent: string): string =>
  `${a2aUrl(publicUrl, agent)}.well-known/agent-card.json`;
