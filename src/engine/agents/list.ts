/**
 * Lists agents by name, a page at a time, with counts and presence: two commands for each shard and one for each
 * gateway, on the connection for large reads. Limit: a page is not a snapshot.
 */
import { readLua, Script } from "../../redis/script.ts";
import type { Presence } from "../../schema/presence.ts";
import type { Broker, BulkReads } from "../broker.ts";
import { type Counts, type StoredAgent, toStored } from "./stored-agent.ts";

export interface ListedAgent extends StoredAgent {
  readonly counts: Counts;
  readonly presence: Presence;
  /** When its next work becomes or became ready, ms; null when none is queued. */
  readonly oldest_at: number | null;
}

export interface AgentPage {
  readonly agents: readonly ListedAgent[];
  /** The next page begins after this name; null: there is none. */
  readonly next: string | null;
}

const rowsScript = new Script(`#!lua flags=no-writes\n${readLua("./page.lua", import.meta.url)}`);

type Row = Pick<ListedAgent, "counts" | "oldest_at"> & {
  readonly agent: StoredAgent;
  readonly seen: number | null;
  readonly unreached: number | null;
  readonly paused: string;
};

/** A page of the names of all agents, in order. */
export async function agentNames(
  broker: BulkReads,
  { after, limit }: { readonly after: string; readonly limit: number },
): Promise<{ readonly names: readonly string[]; readonly next: string | null }> {
  const found = await Promise.all(
    broker.shards.all.map((keys) =>
      broker.bulk.zrangebylex(keys.agentNames, after === "" ? "-" : `(${after}`, "+", "LIMIT", 0, limit + 1),
    ),
  );
  const all = found.flat().sort();
  const names = all.slice(0, limit);
  return { names, next: all.length > limit ? (names.at(-1) ?? null) : null };
}

export async function agentPage(
  broker: BulkReads & Pick<Broker, "clock" | "presence">,
  { after = "", limit }: { readonly after?: string | undefined; readonly limit: number },
): Promise<AgentPage> {
  const { names, next } = await agentNames(broker, { after, limit });
  const rows = (
    await Promise.all(
      broker.shards.all.map((keys) =>
        readRows(
          broker,
          keys,
          names.filter((name) => broker.shards.ofAgent(name) === keys),
        ),
      ),
    )
  ).flat();
  rows.sort((a, b) => (a.agent.name < b.agent.name ? -1 : 1));
  const presences = await broker.presence.ofAll(
    broker.bulk,
    rows.map(({ agent: { name }, seen, unreached, paused }) => ({ name, seen, unreached, paused })),
  );
  const agents = rows.flatMap(({ agent, counts, oldest_at }, index) => {
    const presence = presences[index];
    return presence ? [{ ...agent, counts, oldest_at, presence }] : [];
  });
  return { agents, next };
}

const strings = (reply: unknown): string[] => (Array.isArray(reply) ? reply.map(String) : []);

async function readRows(
  broker: Pick<Broker, "bulk" | "clock">,
  keys: Broker["shards"]["all"][number],
  names: readonly string[],
): Promise<Row[]> {
  if (names.length === 0) return [];
  const now = Date.now() + broker.clock.offset_ms;
  const reply = await rowsScript.run(broker.bulk, [keys.seen, keys.unreached], [keys.base, now, ...names]);
  if (!Array.isArray(reply)) return [];
  return reply.flatMap((row: unknown, index) => {
    const [doc = "", paused, version, created_at, updated_at, credentials_for, ...rest] = strings(row);
    // Deleted since its name was read.
    if (doc === "") return [];
    const [waiting = 0, submitted = 0, working = 0, interrupted = 0, awaiting = 0] = rest
      .slice(0, 5)
      .map(Number);
    const [oldest_at = null, seen = null, unreached = null] = rest
      .slice(5, 8)
      .map((at) => (at === "" ? null : Number(at)));
    const agent = toStored(names[index] ?? "", {
      doc,
      paused,
      version,
      created_at,
      updated_at,
      credentials_for,
    });
    return [
      {
        agent,
        counts: { waiting, delayed: submitted - waiting, working, interrupted, awaiting },
        oldest_at,
        seen,
        unreached,
        paused: rest[8] ?? "",
      },
    ];
  });
}
