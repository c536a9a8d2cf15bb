/**
 * Serves the public card, cacheable, with conditional requests. The well-known address serves the form of the requested
 * version; without a known version it combines both forms, so that every client finds its members. Each pure form also
 * has an address of its own, for clients that check a card against a closed schema and send no version.
 */
import { AgentCard } from "@a2a-js/sdk";
import type { Broker } from "../../../engine/broker.ts";
import { ErrandError } from "../../../schema/errors.ts";
import { KeptPage } from "../../http/kept-page.ts";
import { a2aUrl, pureCardUrl } from "../../http/links.ts";
import type { MountedRequest } from "../../http/mount.ts";
import { TextResponse } from "../../http/text-response.ts";
import { requireAgentName } from "../context.ts";
import { parseVersion, SUPPORTED, type Version } from "../service-parameters.ts";
import { toCardV03 } from "../v03/card.ts";
import { publicCard } from "./card.ts";
import type { KeptCards } from "./kept-cards.ts";
import type { CardSigner } from "./signing.ts";

const MAX_AGE_SECONDS = 60;
/** A card also depends on the configuration, which can only change at a start. */
const STARTED_AT = Date.now();

export async function servePublicCard(
  incoming: MountedRequest,
  broker: Broker,
  signer: CardSigner | null,
  cards: KeptCards,
  fixed?: Version,
): Promise<TextResponse> {
  const agent = await broker.agents.get(requireAgentName(incoming.params.agent));
  const form = fixed ?? parseVersion(incoming.header("a2a-version"), incoming.query["A2A-Version"]?.[0]);
  const isFixed = fixed !== undefined;
  const page = await cards.find(agent, `${form} ${isFixed}`, async () => {
    const plain = publicCard(agent, a2aUrl(broker.publicUrl(), agent.name));
    const card = signer ? await signer.sign(plain) : plain;
    return new KeptPage(JSON.stringify(cardJson(card, form)), {
      "content-type": "application/json",
      "cache-control": `public, max-age=${MAX_AGE_SECONDS}`,
      ...(!isFixed && { vary: "A2A-Version" }),
      link: alternatives(broker.publicUrl(), agent.name, form),
    });
  });
  const changed = Math.floor(Math.max(agent.updated_at, STARTED_AT) / 1000);
  // HTTP dates have a resolution of one second. Until the second of a change is over, the date is one second earlier,
  // so that a further change within it is not missed.
  const isPast = changed < Math.floor((Date.now() + broker.clock.offset_ms) / 1000);
  const date = new Date((isPast ? changed : changed - 1) * 1000).toUTCString();
  const response = isUnchanged(incoming, changed)
    ? page.notModified()
    : page.respond((name) => incoming.header(name));
  return new TextResponse(response.status, response.bytes, { ...response.headers, "last-modified": date });
}

/** Links to the pure cards in the other forms. */
const alternatives = (publicUrl: string, agent: string, shown: Version | null): string =>
  SUPPORTED.filter((version) => version !== shown)
    .map((version) => {
      const url = pureCardUrl(publicUrl, agent, version);
      return `<${url}>; rel="alternate"; type="application/json"; title="A2A ${version}"`;
    })
    .join(", ");

function cardJson(card: AgentCard, version: Version | null): object {
  const current = AgentCard.toJSON(card);
  if (typeof current !== "object" || current === null)
    throw new ErrandError("internal", "The card has no JSON form.");
  if (version === null) {
    const { securitySchemes, skills: _same, ...v03 } = toCardV03(card);
    const schemes: Record<string, object> = Object.fromEntries(
      Object.entries(card.securitySchemes).map(([name, scheme]) => [
        name,
        { ...securitySchemes[name], ...(scheme.scheme && { [scheme.scheme.$case]: scheme.scheme.value }) },
      ]),
    );
    return { ...v03, ...current, securitySchemes: schemes };
  }
  return version === "1.0" ? current : toCardV03(card);
}

/** By the date; `If-None-Match` takes precedence over it. `changed` is in seconds. */
function isUnchanged(incoming: MountedRequest, changed: number): boolean {
  if (incoming.header("if-none-match") !== undefined) return false;
  const since = Date.parse(incoming.header("if-modified-since") ?? "");
  return Number.isFinite(since) && changed * 1000 <= since;
}
