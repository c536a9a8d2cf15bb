/** A worker with the library: records its leases and its replies. One agent, several slots. */
import { Agent } from "../../../src/client/agent.ts";
import type { AgentEvent, Outcome, Work } from "../../../src/client/work.ts";
import { Random } from "../random.ts";
import { keyOf, LIBRARY_AGENT } from "../setup.ts";
import { fenceOf } from "./agent.ts";
import type { Part } from "./part.ts";

const BEHAVIORS = { quick: 60, steady: 15, pieces: 10, ask: 8, retry: 4, fail: 3 } as const;

export async function runLibrary(part: Part): Promise<void> {
  const url = part.gateway();
  const agent = new Agent(
    {
      url,
      token: part.token(`agent:${LIBRARY_AGENT}`),
      agent: LIBRARY_AGENT,
      concurrency: 4,
      leaseSeconds: part.setup.leaseSeconds,
      workerId: part.setup.proc,
      onEvent: (event) => note(part, event),
    },
    (work) => handle(part, work),
  );
  await agent.run(part.finish);
}

const facts = ({ delegation, leaseId: lease }: Work) => ({ id: delegation.id, lease, fence: fenceOf(lease) });

/** The library makes several calls for a reply; its result is recorded as one call. */
function note(part: Part, event: AgentEvent): void {
  if (event.type !== "replied") return;
  const { work, reply, state } = event;
  const text = reply.text ?? "";
  const wants = reply.error?.retryable === true ? "retry" : (reply.state ?? "completed");
  void part.recorder.call("reply", { ...facts(work), text, wants }, async () => ({
    phase: "ok",
    outcome: "matched",
    state,
  }));
}

async function handle(part: Part, work: Work): Promise<Outcome> {
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
