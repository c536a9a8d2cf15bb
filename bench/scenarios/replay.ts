/**
 * A replay of everything that is kept for one principal: a stream from the beginning, over SSE, and what it costs others
 * meanwhile. It fails if an event is missing, repeated or out of order. Limit: one reader; its process shares the cores.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { EventSourceParserStream } from "eventsource-parser/stream";
import { z } from "zod";
import { type Figure, figure } from "../figures.ts";
import { Gateway } from "../gateway.ts";
import { keep } from "../kept.ts";
import { ErrandLoad } from "../load.ts";
import { quantile } from "../numbers.ts";
import type { Options } from "../options.ts";
import type { Stage } from "../stage.ts";
import { clock } from "../tally.ts";

const eventSchema = z.object({ type: z.string(), delegation_id: z.string(), seq: z.number() });
/** Sent, leased, completed. */
const EVENTS_EACH = 3;
const EVERY_MS = 10;
const MIB = 1024 * 1024;

/** Reads the events of the token's principal from the beginning, until it has those of this many delegations. */
async function readAll(url: string, token: string, delegations: number): Promise<void> {
  const stopping = new AbortController();
  const response = await fetch(`${url}/v1/events?after=0`, {
    headers: { accept: "text/event-stream", authorization: `Bearer ${token}` },
    signal: stopping.signal,
  });
  if (!response.ok || !response.body) throw new Error(`replay: ${response.status}`);
  const next = new Map<string, number>();
  let left = delegations * EVENTS_EACH;
  const frames = response.body
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream());
  for await (const { data } of frames) {
    if (data === "") continue;
    const { type, delegation_id, seq } = eventSchema.parse(JSON.parse(data));
    const wanted = next.get(delegation_id) ?? 1;
    if (seq !== wanted) throw new Error(`replay: ${type} ${seq} of ${delegation_id}, not ${wanted}`);
    next.set(delegation_id, wanted + 1);
    left -= 1;
    if (left === 0) break;
  }
  if (next.size !== delegations) throw new Error(`replay: events of ${next.size} delegations`);
  stopping.abort();
}

export async function replay(stage: Stage, options: Options, say: (line: string) => void): Promise<Figure[]> {
  await stage.fsync("everysec");
  const gateway = await Gateway.start(stage);
  const polls = await gateway.agents(1, "replay");
  const [agent] = polls;
  if (!agent) throw new Error("there is no agent");
  const load = await ErrandLoad.start(stage, gateway, polls);
  const perSecond: number[] = [];
  const delays: number[] = [];
  const grown: number[] = [];
  try {
    const { count } = await keep({ stage, gateway, load }, { ...options, kept: options.replayed }, say);
    const delegations = count + 1;
    for (let round = 1; round <= options.rounds; round += 1) {
      const before = (await gateway.usage({ gc: true })).rss;
      let peak = before;
      let isDone = false;
      const times: number[] = [];
      const since = clock();
      const reading = readAll(gateway.url, agent.token, delegations).finally(() => {
        isDone = true;
      });
      const beside = async () => {
        while (!isDone) {
          const at = clock();
          await gateway.call("GET", `/v1/agents/${agent.agent}`);
          times.push(clock() - at);
          peak = Math.max(peak, (await gateway.usage()).rss);
          await sleep(EVERY_MS);
        }
      };
      await Promise.all([reading, beside()]);
      const seconds = (clock() - since) / 1000;
      perSecond.push((delegations * EVENTS_EACH) / seconds);
      delays.push(
        quantile(
          times.sort((a, b) => a - b),
          0.99,
        ),
      );
      grown.push((peak - before) / MIB);
      say(
        `replay ${round}/${options.rounds}: ${delegations * EVENTS_EACH} events in ${seconds.toFixed(1)} s`,
      );
    }
    const more = { delegations };
    return [
      figure("replay_events_per_s", "1/s", perSecond, more),
      figure("replay_get_p99_ms", "ms", delays, more),
      figure("replay_grown_mib", "MiB", grown, more),
    ];
  } finally {
    await load.end();
    await gateway.stop();
    await stage.redis.flushall("ASYNC");
  }
}
