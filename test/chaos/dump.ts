/**
 * Reads every record and every ticket from Redis itself. Limit: it scans, so nothing may move while the result is
 * compared.
 */
import { z } from "zod";
import { Shards } from "../../src/redis/shards.ts";
import { fieldsOf } from "../support/record.ts";
import type { Dump, StoredRecord } from "./history.ts";
import { keyOf } from "./setup.ts";
import type { Stage } from "./stage.ts";

const messageSchema = z.looseObject({ parts: z.array(z.looseObject({ text: z.string().optional() })) });
const QUEUES = ["wait", "paused", "prioritized", "delayed", "active"] as const;

export async function dump(stage: Stage): Promise<Dump> {
  const { redis } = stage;
  const records: StoredRecord[] = [];
  const tickets: string[] = [];
  for (const { base, queuePrefix } of new Shards(stage.options.shards).all) {
    const prefix = `${base}:d:`;
    const keys = [...(await redis.scan(`${prefix}dlg_*`))].filter(
      (name) => !name.slice(prefix.length).includes(":"),
    );
    for (let at = 0; at < keys.length; at += 500) {
      const some = keys.slice(at, at + 500);
      const values = await Promise.all(some.map((name) => fieldsOf(redis.client, name)));
      for (const [index, name] of some.entries()) {
        const { state, version, ticket, fence, target, delegator, message, ...more } = values[index] ?? {};
        // Deleted since the scan.
        if (!state) continue;
        const text = messageSchema.parse(JSON.parse(message ?? '{"parts":[]}')).parts[0]?.text ?? "";
        records.push({
          id: name.slice(prefix.length),
          state,
          version: Number(version),
          ticket: Number(ticket),
          fence: Number(fence),
          target: target ?? "",
          delegator: delegator ?? "",
          key: keyOf(text),
          context: more.context_id,
          parent: more.parent_id,
          behind: more.behind,
          spends: more.spends !== undefined,
        });
      }
    }
    for (const queue of QUEUES) {
      for (const name of await redis.scan(`${queuePrefix}:*:${queue}`)) {
        // Callbacks have a queue, too, with similar jobs.
        if (name.startsWith(`${queuePrefix}:~`)) continue;
        const list =
          queue === "prioritized" || queue === "delayed"
            ? redis.client.zrange(name, "0", "-1")
            : redis.client.lrange(name, 0, -1);
        for (const ticket of await list) if (ticket.startsWith("dlg_")) tickets.push(ticket);
      }
    }
  }
  return { records, tickets };
}

/**
 * The records and tickets on which two consecutive dumps agree. A record that moves during a dump may appear to have
 * no ticket, so a ticket in either dump counts.
 */
export function unmoved(first: Dump, second: Dump): Dump {
  const versions = new Map(second.records.map(({ id, version }) => [id, version]));
  const moved = new Set<string>();
  for (const { id, version } of first.records) {
    if (versions.get(id) !== version) moved.add(id);
    versions.delete(id);
  }
  for (const id of versions.keys()) moved.add(id);
  const isStill = (ticket: string) => !moved.has(ticket.split(".")[0] ?? "");
  return {
    records: first.records.filter(({ id }) => !moved.has(id)),
    tickets: [...new Set([...first.tickets, ...second.tickets])].filter(isStill),
  };
}
