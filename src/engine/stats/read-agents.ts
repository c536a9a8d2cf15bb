/**
 * The figures of the last hour of each agent, a page of agents at a time. Limit: a gateway reads a page again only after
 * ten seconds.
 */
import { keys } from "../../redis/keys.ts";
import type { AgentFigures, AgentFiguresPage } from "../../schema/stats.ts";
import { toInstant } from "../../schema/values.ts";
import { BoundedMap } from "../../util/bounded.ts";
import { type Principal, seesAll } from "../access/access.ts";
import { agentNames } from "../agents/list.ts";
import type { Broker, Scans } from "../broker.ts";
import { type Counted, costsIn, countIn, endOf, NOTHING, readBuckets, sumOf } from "./buckets.ts";
import { CLASSES, FIELD, RESOLUTIONS, slotOf } from "./layout.ts";

const { day: QUARTER } = RESOLUTIONS;
/** The last hour, and as much of a quarter as is over. */
const QUARTERS = 5;
const FRESH_MS = 10_000;
/** A page takes up to 40 kB. */
const MAX_PAGES = 50;
/** Agents in one call of the script: few, so that it does not delay other commands. */
const AGENTS_AT_ONCE = 20;

/** The pages that a gateway has read within the last seconds. */
export class AgentFiguresCache {
  readonly #pages = new BoundedMap<string, { readonly at: number; readonly page: Promise<AgentFiguresPage> }>(
    MAX_PAGES,
  );

  of(key: string, now: number, read: () => Promise<AgentFiguresPage>): Promise<AgentFiguresPage> {
    const known = this.#pages.get(key);
    if (known && Math.abs(now - known.at) < FRESH_MS) return known.page;
    const page = read();
    this.#pages.set(key, { at: now, page });
    // A failure is not kept.
    void page.catch(() => this.#pages.delete(key));
    return page;
  }
}

type Needs = Scans & Pick<Broker, "agentFigures" | "clock" | "counters" | "readLimiter">;

/** Who sees everything gets all agents; an agent gets itself, a caller none. */
export async function readAgentFigures(
  broker: Needs,
  principal: Principal,
  { cursor = "", limit }: { readonly cursor?: string | undefined; readonly limit: number },
): Promise<AgentFiguresPage> {
  const now = Date.now() + broker.clock.offset_ms;
  const own = principal.kind === "agent" && principal.name > cursor ? [principal.name] : [];
  if (!seesAll(principal)) return figuresOf(broker, now, { names: own, next: null });
  const readPage = async () => figuresOf(broker, now, await agentNames(broker, { after: cursor, limit }));
  return broker.readLimiter.run(principal, () => broker.agentFigures.of(`${limit} ${cursor}`, now, readPage));
}

async function figuresOf(
  broker: Needs,
  now: number,
  { names, next }: { readonly names: readonly string[]; readonly next: string | null },
): Promise<AgentFiguresPage> {
  // The moves of other gateways are there within a second.
  await broker.counters.flush();
  const last = slotOf(now, QUARTER);
  const slots = Array.from({ length: QUARTERS }, (_, n) => last - QUARTERS + 1 + n);
  const agents: AgentFigures[] = [];
  for (let from = 0; from < names.length; from += AGENTS_AT_ONCE) {
    const some = names.slice(from, from + AGENTS_AT_ONCE);
    const wanted = some.flatMap((name) =>
      slots.map((slot) => keys.stats(`target:${name}`, QUARTER.seconds, slot)),
    );
    const [buckets, since] = await Promise.all([
      readBuckets(broker.bulk, wanted),
      Promise.all(some.map((name) => broker.agents.since(name))),
    ]);
    for (const [at, agent] of some.entries()) {
      // An older bucket belongs to a deleted agent of the same name.
      const own = buckets
        .slice(at * QUARTERS, (at + 1) * QUARTERS)
        .map((fields, n) => (endOf(slots[n] ?? 0, QUARTER) > (since[at] ?? 0) ? fields : NOTHING));
      agents.push(toFigures(agent, own));
    }
  }
  return { since: toInstant((slots[0] ?? 0) * QUARTER.seconds * 1000), agents, next_cursor: next };
}

function toFigures(agent: string, quarters: readonly Counted[]): AgentFigures {
  const number = (fields: Counted, field: string) => fields.get(field) ?? 0;
  const completed = (fields: Counted) => countIn(fields, CLASSES, FIELD.answer);
  const all = sumOf(quarters);
  return {
    agent,
    completed: completed(all),
    failed: number(all, FIELD.failed),
    rejected: number(all, FIELD.rejected),
    canceled: number(all, FIELD.canceled),
    quarters: quarters.map((fields) => ({
      ok: completed(fields),
      failed: number(fields, FIELD.failed) + number(fields, FIELD.rejected),
    })),
    costs: costsIn(all),
  };
}
