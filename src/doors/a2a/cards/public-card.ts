/**
 * The public card as an answer: the form of the version that is asked for, cacheable and checked by tag or date. Limit:
 * without a version that is known it carries both forms at once, so that every client finds what it looks for.
 */
import { createHash } from "node:crypto";
import { AgentCard } from "@a2a-js/sdk";
import type { Broker } from "../../../engine/broker.ts";
import { ErrandError } from "../../../schema/errors.ts";
import { a2aUrl } from "../../http/links.ts";
import type { MountedRequest } from "../../http/mount.ts";
import { jsonText, TextResponse } from "../../http/text-response.ts";
import { requireName } from "../context.ts";
import { cardV03 } from "../v03/card.ts";
import { versionNamed } from "../version.ts";
import { publicCard } from "./card.ts";
import type { Signer } from "./signing.ts";

const MAX_AGE_SECONDS = 60;
/** A card also changes with the configuration, which changes with a start at most. */
const STARTED_AT = Date.now();

export async function published(
  request: MountedRequest,
  broker: Broker,
  signer: Signer | null,
): Promise<TextResponse> {
  const agent = await broker.agents.get(requireName(request.params.agent));
  const plain = publicCard(agent, a2aUrl(broker.publicUrl(), agent.name));
  const card = signer ? await signer.sign(plain) : plain;
  const text = JSON.stringify(formOf(request, card));
  const changed = Math.floor(Math.max(agent.updated_at, STARTED_AT) / 1000);
  // A date counts in seconds: while that of a change lasts, another may come, so an earlier one is told.
  const isPast = changed < Math.floor((Date.now() + broker.clock.offset_ms) / 1000);
  const tag = `W/"${createHash("sha256").update(text).digest("base64url").slice(0, 27)}"`;
  const headers = {
    etag: tag,
    "cache-control": `public, max-age=${MAX_AGE_SECONDS}`,
    "last-modified": new Date((isPast ? changed : changed - 1) * 1000).toUTCString(),
    vary: "A2A-Version, Origin",
  };
  return isFresh(request, tag, changed) ? new TextResponse(304, null, headers) : jsonText(200, text, headers);
}

function formOf(request: MountedRequest, card: AgentCard): object {
  const version = versionNamed(request.header("a2a-version"), request.query["A2A-Version"]?.[0]);
  const current = AgentCard.toJSON(card);
  if (typeof current !== "object" || current === null)
    throw new ErrandError("internal", "A card has no form.");
  if (version === null) {
    const { securitySchemes, skills: _same, ...old } = cardV03(card);
    const schemes: Record<string, object> = Object.fromEntries(
      Object.entries(card.securitySchemes).map(([name, scheme]) => [
        name,
        { ...securitySchemes[name], ...(scheme.scheme && { [scheme.scheme.$case]: scheme.scheme.value }) },
      ]),
    );
    return { ...old, ...current, securitySchemes: schemes };
  }
  return version === "1.0" ? current : cardV03(card);
}

/** The tag decides where one is sent. `changed` in seconds. */
function isFresh(request: MountedRequest, tag: string, changed: number): boolean {
  const tags = request.header("if-none-match");
  if (tags !== undefined) {
    return tags.split(",").some((one) => one.trim() === "*" || bare(one) === bare(tag));
  }
  const since = Date.parse(request.header("if-modified-since") ?? "");
  return Number.isFinite(since) && changed * 1000 <= since;
}

const bare = (tag: string): string => tag.trim().replace(/^W\//, "");
