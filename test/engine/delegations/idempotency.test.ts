/**
 * Random interleavings of requests with one idempotency key, command by command, while the agent's queue is full at
 * times: at most one delegation, the right answer for each caller, and no key without a delegation.
 */

import { expect, test } from "vitest";
import type { Broker } from "../../../src/engine/broker.ts";
import { delegate } from "../../../src/engine/delegations/delegate.ts";
import { Writer } from "../../../src/lifecycle/writer.ts";
import type { Redis } from "../../../src/redis/connect.ts";
import { delegateRequestSchema } from "../../../src/schema/delegation.ts";
import { ErrandError } from "../../../src/schema/errors.ts";
import { client, startBroker } from "../../support/broker.ts";
import { randomOf } from "../../support/random.ts";

const WALKS = 150;
const DAY_MS = 86_400_000;
const STEPPED: ReadonlySet<unknown> = new Set([
  "set",
  "get",
  "eval",
  "evalsha",
  "hmget",
  "hgetall",
  "pipeline",
]);
const AGENT = "{errand:0}:agent:scout";

/** One request, whose commands wait until the test releases them. */
class Caller {
  readonly body: string;
  /** `made` or `found` with the id, or the code of the refusal. */
  answer: readonly [what: string, id: string] | null = null;
  #go: (() => void) | null = null;
  #stopped: () => void = () => {};

  constructor(broker: Broker, redis: Redis, key: string, body: string) {
    this.body = body;
    const stepped = new Proxy(redis, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== "function") return member;
        if (!STEPPED.has(name)) return member.bind(target);
        return async (...args: unknown[]): Promise<unknown> => {
          await new Promise<void>((go) => {
            this.#go = go;
            this.#stopped();
          });
          return Reflect.apply(member, target, args);
        };
      },
    });
    const writer = new Writer({ ...broker, redis: stepped });
    const request = delegateRequestSchema.parse({ target: "scout", task: body });
    const options = { idempotencyKey: key, body };
    void delegate(
      { ...broker, redis: stepped, writer },
      { kind: "caller", name: "alice", text: "caller:alice" },
      request,
      options,
    )
      .then(({ record, replayed }): readonly [string, string] => [replayed ? "found" : "made", record.id])
      .catch((error: unknown): readonly [string, string] => {
        if (!(error instanceof ErrandError)) throw error;
        return [error.code, error.context.delegation_id ?? ""];
      })
      .then((answer) => {
        this.answer = answer;
        this.#stopped();
      });
  }

  /** Runs until its next command, or its end. */
  async step(): Promise<void> {
    const stopped = new Promise<void>((resolve) => {
      this.#stopped = resolve;
    });
    this.#go?.();
    this.#go = null;
    await stopped;
  }

  get isDone(): boolean {
    return this.answer !== null;
  }
}

test(`${WALKS} walks make at most one delegation of a key, and refusals leave no key`, async () => {
  const { url, gateway, redis } = await startBroker();
  await client(url).agent("scout");
  const seen = new Set<string>();
  for (let seed = 1; seed <= WALKS; seed += 1) {
    const random = randomOf(seed);
    const bodies = ["one", "one", "one", "two"].slice(random(3));
    await redis.hset(AGENT, "max_waiting", random(2) * 10_000);
    const callers: Caller[] = [];
    const waiting = [...bodies];
    while (waiting.length > 0 || callers.some((one) => !one.isDone)) {
      const running = callers.filter((one) => !one.isDone);
      const at = random(running.length + waiting.length + 1);
      if (at < running.length) await running[at]?.step();
      else if (at < running.length + waiting.length) {
        const [body = ""] = waiting.splice(at - running.length, 1);
        const caller = new Caller(gateway.broker, redis, `k${seed}`, body);
        callers.push(caller);
        await caller.step();
      } else await redis.hset(AGENT, "max_waiting", random(2) * 10_000);
    }

    const what = `seed ${seed}: ${JSON.stringify(callers.map(({ body, answer }) => [body, ...(answer ?? [])]))}`;
    const made = callers.filter(({ answer }) => answer?.[0] === "made");
    for (const { answer } of callers) seen.add(answer?.[0] ?? "");
    expect(made.length, what).toBeLessThanOrEqual(1);
    const names = await redis.keys("errand:idempotency:*");
    expect(names.length, what).toBe(made.length);
    const [winner] = made;
    for (const { body, answer } of callers) {
      const [outcome, id] = answer ?? [];
      if (outcome === "found") expect([body, id], what).toEqual([winner?.body, winner?.answer?.[1]]);
      // With the other body, which was in progress then and may be refused by now.
      if (outcome === "idempotency_conflict") expect(new Set(bodies).size, what).toBe(2);
    }
    for (const name of names) {
      expect((await redis.get(name))?.split(" ")[1], what).toBe(winner?.answer?.[1]);
      expect(await redis.pttl(name), what).toBeGreaterThan(DAY_MS);
      await redis.del(name);
    }
  }
  expect([...seen].sort()).toEqual(["found", "idempotency_conflict", "made", "queue_full"]);
});
