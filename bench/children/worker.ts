/**
 * Agents that poll: each long-poll is a connection of its own, replies at once, and asks for the next lease in the same
 * round trip. Limit: one load at a time; stopping it cuts the parked polls.
 */
import { z } from "zod";
import { CLIENTS, openClient } from "../clients.ts";
import type { LoadClient } from "../lane.ts";
import { ageIn, filler } from "../payload.ts";
import { serve } from "../remote.ts";
import { Tallier } from "../tally.ts";

const loadSchema = z.object({
  client: z.enum(CLIENTS),
  url: z.string(),
  /** One poll each. */
  polls: z.array(z.object({ agent: z.string(), token: z.string() })),
  bytes: z.number(),
});

/** The longest hold that the API allows, so that an idle poll is really idle. */
const POLL = '{"wait_seconds":60}';
const AT_ONCE = 200;
const LEASES = '"leases":[';
const LEASE_ID = '{"lease_id":"';

const tallier = new Tallier();
let lanes: LoadClient[] = [];
let stopping = false;

async function work(lane: LoadClient, agent: string, reply: string): Promise<void> {
  const pollPath = `/v1/agents/${agent}/leases`;
  let path = pollPath;
  for (;;) {
    const { status, body } = await lane.post(path, path === pollPath ? POLL : reply);
    if (status !== 200) throw new Error(`${path} was answered ${status}: ${body.slice(0, 300)}`);
    const leases = body.lastIndexOf(LEASES) + LEASES.length;
    if (body.startsWith(LEASE_ID, leases)) {
      const start = leases + LEASE_ID.length;
      const end = body.indexOf('"', start);
      tallier.add(ageIn(body, end));
      path = `/v1/leases/${body.slice(start, end)}/reply`;
    } else {
      path = pollPath;
    }
  }
}

serve({
  async start(args) {
    const { client, url, polls, bytes } = loadSchema.parse(args);
    const reply = `{"state":"completed","text":"${filler(bytes)}","next":${POLL}}`;
    stopping = false;
    // No more at once than the default backlog of a listening socket.
    for (let at = 0; at < polls.length; at += AT_ONCE) {
      const some = polls.slice(at, at + AT_ONCE).map(({ agent, token }) => {
        const lane = openClient(client, url, token);
        work(lane, agent, reply).catch((error: unknown) => stopping || tallier.fail(error));
        return lane;
      });
      lanes.push(...some);
      await Promise.all(some.map((lane) => lane.opened()));
    }
  },
  failure: () => tallier.failure,
  mark: () => tallier.mark(),
  take: () => tallier.take(),
  stop() {
    stopping = true;
    for (const lane of lanes) lane.close();
    lanes = [];
  },
});
