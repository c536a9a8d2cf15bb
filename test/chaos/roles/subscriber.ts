/**
 * Subscribers that record every event before they continue, and resume from the last recorded cursor, as a killed
 * process must. Each starts at the beginning, so that its events can be counted.
 */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { createParser } from "eventsource-parser";
import * as z from "zod";
import { readRows } from "../history.ts";
import type { Part } from "./part.ts";

const eventSchema = z.looseObject({
  id: z.string(),
  type: z.string(),
  delegation_id: z.string().optional(),
  seq: z.number().optional(),
  at: z.string().optional(),
  state: z.string().optional(),
  status: z.string().optional(),
  delegator: z.string().optional(),
  target: z.string().optional(),
});

/** Hash of the parts that are the same for every reader. */
export function hashOf(event: z.infer<typeof eventSchema>): string {
  const { type, delegation_id, seq, at, state, status = "", attempt, worker_id, progress, retry_at } = event;
  const text = JSON.stringify([
    type,
    delegation_id,
    seq,
    at,
    state,
    status,
    attempt,
    worker_id,
    progress,
    retry_at,
  ]);
  return createHash("sha1").update(text).digest("base64url").slice(0, 12);
}

export async function runSubscriber(part: Part): Promise<void> {
  const last = cursors(part);
  const principals = Object.keys(part.setup.tokens).filter((name) => /^(?:caller|operator)/.test(name));
  await Promise.all(
    principals.flatMap((as) => [
      stream(part, as, `${part.setup.proc}/${as}/sse`, last),
      poll(part, as, `${part.setup.proc}/${as}/json`, last),
    ]),
  );
}

/** The last recorded cursor of each subscriber of this process. */
function cursors(part: Part): Map<string, string> {
  const last = new Map<string, string>();
  if (!existsSync(part.setup.history)) return last;
  for (const row of readRows(part.setup.history)) {
    if (row.row === "event" || row.row === "reset") last.set(row.sub, row.cursor);
  }
  return last;
}

function take(part: Part, sub: string, data: unknown): string {
  const event = eventSchema.parse(data);
  const {
    id: cursor,
    type,
    delegation_id: id = "",
    seq = 0,
    state = "",
    status = "",
    delegator = "",
    target = "",
  } = event;
  if (type === "RESET") part.recorder.note({ row: "reset", sub, cursor });
  // How far a quiet stream is; it tells of no delegation.
  else if (type !== "CURSOR") {
    const hash = hashOf(event);
    part.recorder.note({ row: "event", sub, cursor, id, seq, type, status, state, delegator, target, hash });
  }
  return cursor;
}

async function stream(part: Part, as: string, sub: string, last: ReadonlyMap<string, string>): Promise<void> {
  let cursor = last.get(sub) ?? "0";
  while (!part.finished) {
    part.recorder.note({ row: "subscribe", sub, as, from: cursor });
    // Some disconnect by themselves, at any point.
    const patience = part.random.chance(0.3) ? part.random.between(500, 5_000) : 20_000;
    const read = async (signal: AbortSignal) => {
      const response = await fetch(`${part.gateway()}/v1/events`, {
        headers: {
          authorization: `Bearer ${part.token(as)}`,
          accept: "text/event-stream",
          "last-event-id": cursor,
        },
        signal,
      });
      if (!response.ok || !response.body) throw new Error(`status ${response.status}`);
      const parser = createParser({
        onEvent: ({ data }) => {
          cursor = take(part, sub, JSON.parse(data));
        },
      });
      const decoder = new TextDecoder();
      for await (const bytes of response.body) parser.feed(decoder.decode(bytes, { stream: true }));
    };
    await part.within(patience, read).catch(() => part.sleep(part.random.between(50, 400)));
  }
}

const pageSchema = z.object({ events: z.array(z.unknown()), cursor: z.string() });

async function poll(part: Part, as: string, sub: string, last: ReadonlyMap<string, string>): Promise<void> {
  let cursor = last.get(sub) ?? "0";
  part.recorder.note({ row: "subscribe", sub, as, from: cursor });
  while (!part.finished) {
    const { phase, body } = await part.send({
      as,
      method: "GET",
      path: `/v1/events?wait_seconds=3&limit=200&after=${encodeURIComponent(cursor)}`,
      headers: { accept: "application/json" },
      holdSeconds: 3,
    });
    if (phase !== "ok") {
      await part.sleep(part.random.between(50, 400));
      continue;
    }
    const page = pageSchema.parse(body);
    for (const event of page.events) take(part, sub, event);
    // Also past events that a filter dropped; a process that dies here resumes a little earlier, and loses nothing.
    cursor = page.cursor;
  }
}
