/** A worker with the library: records its leases and its replies. One agent, several slots. */
import { Agent } from "../../../src/client/agent.ts";
import type { AgentEvent, Reply, Work } from "../../../src/client/work.ts";
import { Random } from "../random.ts";
import type { Ending } from "../recorder.ts";
import { keyOf, LIBRARY_AGENT } from "../setup.ts";
import { fenceOf } from "./agent.ts";
import type { Part } from "./part.ts";

const BEHAVIORS = { quick: 60, steady: 15, pieces: 10, ask: 8, retry: 4, fail: 3 } as const;

export async function runLibrary(part: Part): Promise<void> {
  const url = part.gateway();
  const replies = new Replies(part);
  const agent = new Agent(
    {
      url,
      token: part.token(`agent:${LIBRARY_AGENT}`),
      agent: LIBRARY_AGENT,
      concurrency: 4,
      leaseSeconds: part.setup.leaseSeconds,
      workerId: part.setup.proc,
      onEvent: (event) => replies.end(event),
    },
    async (work) => {
      const outcome = await handle(part, work);
      replies.begin(work, outcome);
      return outcome;
    },
  );
  await agent.run(part.finish);
}

const facts = ({ delegation, leaseId: lease }: Work) => ({ id: delegation.id, lease, fence: fenceOf(lease) });

/**
 * The library makes several calls for a reply, which are recorded as one. It begins before the library gets the outcome: on
 * a busy machine the library reports a reply long after the broker accepted it. One that is never reported has no end.
 */
class Replies {
  readonly #part: Part;
  readonly #ends = new Map<string, (ending: Ending) => void>();

  constructor(part: Part) {
    this.#part = part;
  }

  begin(work: Work, outcome: string | Reply): void {
    const reply: Reply = typeof outcome === "string" ? { state: "completed", text: outcome } : outcome;
    // The library asks for another attempt at a failure without `retryable` if it suspects the worker.
    const mayRetry = reply.state === "failed" && reply.error?.retryable !== false;
    const wants = mayRetry ? "retry" : reply.state;
    const replied = new Promise<Ending>((resolve) => this.#ends.set(work.leaseId, resolve));
    void this.#part.recorder.call("reply", { ...facts(work), text: reply.text ?? "", wants }, () => replied);
  }

  end(event: AgentEvent): void {
    if (event.type !== "replied") return;
    const { work, state } = event;
    this.#ends.get(work.leaseId)?.({ phase: "ok", outcome: "matched", state });
    this.#ends.delete(work.leaseId);
  }
}

async function handle(part: Part, work: Work): Promise<string | Reply> {
  const { id, lease, fence } = facts(work);
  const granted_at = Date.parse(work.delegation.lease?.granted_at ?? "");
  const grants = [{ id, lease, fence, attempt: work.attempt, granted_at }];
  await part.recorder.call("lease", { target: LIBRARY_AGENT }, async () => ({ phase: "ok", grants }));
  const key = keyOf(work.text);
  const random = new Random(part.setup.seed, `${key}/${fence}`);
  const text = `completed ${key} ${fence}`;
  switch (random.weighted(BEHAVIORS)) {
    case "steady":
      for (let done = 1; done <= random.int(1, 4); done += 1) {
        work.progress({ message: `step ${done}`, done });
        await part.sleep(random.between(200, 1_500));
      }
      return text;
    case "pieces":
      for (let piece = 0; piece < random.int(1, 5); piece += 1) {
        const artifact = { artifactId: "a", parts: [{ text: `${key} ${piece}` }] };
        await work.artifact(artifact, { append: piece > 0 });
      }
      return text;
    case "ask":
      await work.ask({ text: "May I?", requestId: "may" });
      return text;
    case "retry":
      if (fence < 3) {
        return { state: "failed", text, error: { code: "flaky", message: "try again", retryable: true } };
      }
      return text;
    case "fail":
      return { state: "failed", text, error: { code: "broken", message: "it does not go" } };
    default:
      return text;
  }
}
