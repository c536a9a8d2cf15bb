/**
 * Races from two gateways, five hundred of each kind. Each has one winner, which the record shows; the loser gets the
 * right code, and the stream has no gap and one end.
 */
import { expect, test } from "vitest";
import type { Gateway } from "../../src/gateway/gateway.ts";
import { as, OPERATOR, startBroker } from "../support/broker.ts";
import { checkHistory, eventsOf } from "../support/history.ts";
import { keepAliveClient, type SendRequest, type ShortAnswer } from "../support/keep-alive-client.ts";

const AT_ONCE = 100;
const ROUNDS = 5;
const PATIENCE_MS = 120_000;

interface Runner {
  readonly id: string;
  readonly lease: string;
}

async function setup() {
  const broker = await startBroker();
  const other = await broker.another();
  const gateways: readonly Gateway[] = [broker.gateway, other.gateway];
  const gatewayCalls: readonly SendRequest[] = [keepAliveClient(broker.url), keepAliveClient(other.url)];
  const alice = (await as(broker.url, "caller:alice")).token;
  const post = (via: number, token: string, path: string, body: unknown = {}): Promise<ShortAnswer> => {
    const callGateway = gatewayCalls[via];
    if (!callGateway) throw new RangeError("no gateway");
    return callGateway(token, "POST", path, body);
  };
  const get = async (path: string): Promise<ShortAnswer["body"]> =>
    (await gatewayCalls[0]?.(OPERATOR, "GET", path))?.body;
  const agent = async (name: string, spec: unknown = {}) => {
    await gatewayCalls[0]?.(OPERATOR, "PUT", `/v1/agents/${name}`, spec);
    return (await as(broker.url, `agent:${name}`)).token;
  };
  const scout = await agent("scout");
  let round = 0;

  /** One delegation for each target, all with one context. */
  const delegate = async (more: object = {}, targets: readonly string[] = Array(AT_ONCE).fill("scout")) => {
    round += 1;
    const context_id = `race-${round}`;
    const delegations = targets.map((target) => ({ target, task: "run", context_id, ...more }));
    const { body } = await post(round % 2, alice, "/v1/delegations/batch", { delegations });
    const ids: string[] = body.results.map((one: { delegation: { id: string } }) => one.delegation.id);
    return { context_id, ids };
  };
  /** The same, each leased by scout. */
  const delegateAndLease = async (more: object = {}, ask: object = {}) => {
    const { context_id, ids } = await delegate(more);
    const runners: Runner[] = [];
    while (runners.length < ids.length) {
      const { body } = await post(round % 2, scout, "/v1/agents/scout/leases", { max: 32, ...ask });
      for (const { lease_id, delegation } of body.leases)
        runners.push({ id: delegation.id, lease: lease_id });
    }
    return { context_id, runners };
  };
  /** The delegations of a context, by id. */
  const records = async (context_id: string) => {
    const { delegations } = await get(`/v1/delegations?context_id=${context_id}&limit=100`);
    return new Map<string, ShortAnswer["body"]>(delegations.map((one: { id: string }) => [one.id, one]));
  };
  const check = async (id: string, expected: "finished" | "live") => {
    const events = (one: string, query: string) =>
      gatewayCalls[1]?.(OPERATOR, "GET", `/v1/delegations/${one}/events${query}`) ??
      Promise.reject(new RangeError());
    checkHistory(await eventsOf({ events }, id), expected);
  };
  const sweep = () => Promise.all(gateways.map((gateway) => gateway.sweep.tick()));
  const settled = async () => {
    for (const { broker } of gateways) await Promise.allSettled(broker.background);
  };
  return {
    ...broker,
    gateways,
    alice,
    scout,
    post,
    get,
    agent,
    delegate,
    delegateAndLease,
    records,
    check,
    sweep,
    settled,
  };
}

/** Starts both at once, in either order. */
async function both<A, B>(first: boolean, a: () => Promise<A>, b: () => Promise<B>): Promise<[A, B]> {
  if (first) return Promise.all([a(), b()]);
  const later = b();
  return Promise.all([a(), later]);
}

/** Each side uses both gateways in turn, so that one that is slower all the time does not decide every race. */
const gatewaysOf = (n: number): readonly [number, number] => (n % 4 < 2 ? [0, 1] : [1, 0]);

/** Sends one request for each runner, alternating the gateways; `then` starts once a number of them were answered. */
async function raceAll(
  runners: readonly Runner[],
  after: number,
  send: (runner: Runner, n: number) => Promise<ShortAnswer>,
  then: () => Promise<unknown>,
): Promise<readonly ShortAnswer[]> {
  let answered = 0;
  let joining: Promise<unknown> | undefined;
  const join = () => {
    if (answered >= after) joining ??= then();
  };
  join();
  const ends = await Promise.all(
    runners.map(async (runner, n) => {
      const end = await send(runner, n);
      answered += 1;
      join();
      return end;
    }),
  );
  await joining;
  return ends;
}

const each = (runners: readonly Runner[], work: (runner: Runner, n: number) => Promise<void>) =>
  Promise.all(runners.map(work));

const outcomeOf = ({ status, body }: ShortAnswer) => [
  status,
  body?.code ?? null,
  body?.details?.reason ?? null,
];
const OK = [200, null, null];
const lost = (reason: string) => [409, "lease_lost", reason];
const NOT_OPEN = [409, "interrupt_not_open", null];
const FINISHED = [409, "already_finished", null];

/** Asserts that every kind of winner was seen, so that it was a race. */
function winners() {
  const wins = new Map<string, number>();
  return {
    count: (who: string) => wins.set(who, (wins.get(who) ?? 0) + 1),
    expect: (...names: string[]) => {
      expect([...wins.keys()].sort()).toEqual(names.sort());
      expect([...wins.values()].reduce((sum, n) => sum + n)).toBe(AT_ONCE * ROUNDS);
    },
  };
}

test("reply and cancel", { timeout: PATIENCE_MS }, async () => {
  const { alice, scout, post, delegateAndLease, records, check } = await setup();
  const wins = winners();
  for (let round = 0; round < ROUNDS; round += 1) {
    const { context_id, runners } = await delegateAndLease();
    const ends = await Promise.all(
      runners.map(({ id, lease }, n) =>
        both(
          n % 2 === 0,
          () => post(n % 2, scout, `/v1/leases/${lease}/reply`, { state: "completed", text: "done" }),
          () => post((n + 1) % 2, alice, `/v1/delegations/${id}/cancel`),
        ),
      ),
    );
    const after = await records(context_id);
    await each(runners, async ({ id }, n) => {
      const { state, reply } = after.get(id);
      wins.count(state);
      expect(ends[n]?.map(outcomeOf)).toEqual(
        state === "completed" ? [OK, FINISHED] : [lost("canceled"), OK],
      );
      expect(reply !== null).toBe(state === "completed");
      await check(id, "finished");
    });
  }
  wins.expect("canceled", "completed");
});

test("reply and expiry", { timeout: PATIENCE_MS }, async () => {
  const { clock, scout, post, delegateAndLease, records, check, sweep } = await setup();
  const wins = winners();
  for (let round = 0; round < ROUNDS; round += 1) {
    // In turn: the delegation's deadline passes, or its last lease ends.
    const isWhole = round % 2 === 0;
    const { context_id, runners } = await delegateAndLease(
      isWhole ? { ttl_seconds: 100 } : { max_attempts: 1 },
      {
        lease_seconds: isWhole ? 1000 : 100,
      },
    );
    clock.offset_ms += 101_000;
    const reply = ({ lease }: Runner, n: number) =>
      post(n % 2, scout, `/v1/leases/${lease}/reply`, { state: "completed", text: "done" });
    const ends = await raceAll(runners, (round * AT_ONCE) / ROUNDS, reply, sweep);
    const after = await records(context_id);
    await each(runners, async ({ id }, n) => {
      const { state, error } = after.get(id);
      const code = isWhole ? "deadline_exceeded" : "attempts_exhausted";
      expect(error?.code ?? null).toBe(state === "failed" ? code : null);
      wins.count(state);
      const end = ends[n];
      expect(end && outcomeOf(end)).toEqual(state === "completed" ? OK : lost("expired"));
      await check(id, "finished");
    });
  }
  wins.expect("completed", "failed");
});

/** Leases that asked a question, with the id of the question. */
async function asking(
  { scout, post }: Awaited<ReturnType<typeof setup>>,
  runners: readonly Runner[],
  more: object = {},
) {
  const asked = await Promise.all(
    runners.map(({ lease }, n) =>
      post(n % 2, scout, `/v1/leases/${lease}/interrupt`, { kind: "input", text: "Go on?", ...more }),
    ),
  );
  return asked.map(({ body }) => String(body.interrupt_id));
}

test("answer and expiry", { timeout: PATIENCE_MS }, async () => {
  const setting = await setup();
  const { clock, alice, post, delegateAndLease, records, check, sweep } = setting;
  const wins = winners();
  for (let round = 0; round < ROUNDS; round += 1) {
    const { context_id, runners } = await delegateAndLease();
    const questions = await asking(setting, runners, { expires_in_seconds: 100 });
    clock.offset_ms += 101_000;
    // One after the other, because the sweep needs two moves for each of them.
    let before: Promise<unknown> = Promise.resolve();
    const answer = ({ id }: Runner, n: number) => {
      const body = { interrupt_id: questions[n], text: "yes" };
      const end = before.then(() => post(n % 2, alice, `/v1/delegations/${id}/answer`, body));
      before = end;
      return end;
    };
    const ends = await raceAll(runners, (round * AT_ONCE) / ROUNDS, answer, sweep);
    const after = await records(context_id);
    await each(runners, async ({ id }, n) => {
      const { state, error, history } = after.get(id);
      expect(error?.code ?? null).toBe(state === "failed" ? "interrupt_expired" : null);
      expect(history).toHaveLength(state === "failed" ? 1 : 2);
      wins.count(state);
      const end = ends[n];
      expect(end && outcomeOf(end)).toEqual(state === "submitted" ? OK : NOT_OPEN);
      await check(id, state === "failed" ? "finished" : "live");
      if (state === "submitted") await post(0, alice, `/v1/delegations/${id}/cancel`);
    });
  }
  wins.expect("failed", "submitted");
});

test("two replies", { timeout: PATIENCE_MS }, async () => {
  const { scout, post, delegateAndLease, records, check } = await setup();
  const wins = winners();
  for (let round = 0; round < ROUNDS; round += 1) {
    const { context_id, runners } = await delegateAndLease();
    const ends = await Promise.all(
      runners.map(({ lease }, n) => {
        const reply = (via: number, body: object) => () =>
          post(via, scout, `/v1/leases/${lease}/reply`, body);
        const [one, other] = gatewaysOf(n);
        return both(
          n % 2 === 0,
          reply(one, { state: "completed", text: "done" }),
          reply(other, { state: "failed", error: { code: "broken", message: "no" } }),
        );
      }),
    );
    const after = await records(context_id);
    await each(runners, async ({ id }, n) => {
      const { state } = after.get(id);
      wins.count(state);
      expect(ends[n]?.map(outcomeOf)).toEqual(
        state === "completed" ? [OK, lost("finished")] : [lost("finished"), OK],
      );
      await check(id, "finished");
    });
  }
  wins.expect("completed", "failed");
});

test("two answers", { timeout: PATIENCE_MS }, async () => {
  const setting = await setup();
  const { url, alice, post, delegateAndLease, records, check } = setting;
  const ann = (await as(url, "approver:ann")).token;
  const wins = winners();
  for (let round = 0; round < ROUNDS; round += 1) {
    const { context_id, runners } = await delegateAndLease();
    const questions = await asking(setting, runners);
    const ends = await Promise.all(
      runners.map(({ id }, n) => {
        const answer = (via: number, by: string, decision: string) => () =>
          post(via, by, `/v1/delegations/${id}/answer`, { interrupt_id: questions[n], decision });
        const [one, other] = gatewaysOf(n);
        return both(n % 2 === 0, answer(one, alice, "approve"), answer(other, ann, "deny"));
      }),
    );
    const after = await records(context_id);
    await each(runners, async ({ id }, n) => {
      const { history } = after.get(id);
      expect(history).toHaveLength(2);
      const { decision } = history[1].metadata;
      wins.count(decision);
      expect(ends[n]?.map(outcomeOf)).toEqual(decision === "approve" ? [OK, NOT_OPEN] : [NOT_OPEN, OK]);
      await check(id, "live");
      await post(0, alice, `/v1/delegations/${id}/cancel`);
    });
  }
  wins.expect("approve", "deny");
});

test("two leases of one ticket", { timeout: PATIENCE_MS }, async () => {
  const { gateways, post, get, agent, delegate, check } = await setup();
  const wins = winners();
  const names = Array.from({ length: AT_ONCE }, (_, n) => `scout-${n}`);
  for (const name of names) await agent(name);
  for (let round = 0; round < ROUNDS; round += 1) {
    const { ids } = await delegate({}, names);
    // Half by polls, which the queue gives different tickets; half by the writer alone, as if the queue had given
    // both the same.
    const isPolled = round % 2 === 0;
    await Promise.all(
      ids.map(async (id, n) => {
        const grants = isPolled
          ? await both(
              n % 2 === 0,
              () => post(0, OPERATOR, `/v1/agents/scout-${n}/leases`, { wait_seconds: 0 }),
              () => post(1, OPERATOR, `/v1/agents/scout-${n}/leases`, { wait_seconds: 0 }),
            ).then((polls) => polls.map(({ body }) => body.leases.length === 1))
          : await Promise.all(
              gateways.map(async ({ broker: { writer } }, via) => {
                const params = { ticket: 1, nonce: `n${via}`, worker_id: "w" };
                const { outcome } = await writer.move({ move: "lease", id, params });
                if (outcome.kind !== "ok") expect(outcome.kind).toBe("state");
                return outcome.kind === "ok";
              }),
            );
        expect(grants.filter(Boolean)).toHaveLength(1);
        wins.count(grants[0] ? "first" : "second");
        const { state, version } = await get(`/v1/delegations/${id}`);
        expect([state, version]).toEqual(["working", 2]);
        await check(id, "live");
        await post(0, OPERATOR, `/v1/delegations/${id}/cancel`);
      }),
    );
  }
  wins.expect("first", "second");
});

test("cancel of a parent and submit of a child", { timeout: PATIENCE_MS }, async () => {
  const { alice, scout, post, get, agent, delegateAndLease, check, settled } = await setup();
  const wins = winners();
  await agent("smith");
  for (let round = 0; round < ROUNDS; round += 1) {
    const { runners } = await delegateAndLease();
    const ends = await Promise.all(
      runners.map(({ id }, n) =>
        both(
          n % 2 === 0,
          () => post(n % 2, scout, "/v1/delegations", { target: "smith", task: "part", parent_id: id }),
          () => post((n + 1) % 2, alice, `/v1/delegations/${id}/cancel`),
        ),
      ),
    );
    await settled();
    await each(runners, async ({ id }, n) => {
      const [child, cancel] = ends[n] ?? [];
      if (!child || !cancel) throw new Error("no race");
      expect(outcomeOf(cancel)).toEqual(OK);
      await check(id, "finished");
      const { delegations } = await get(`/v1/delegations?parent_id=${id}`);
      if (child.status === 202) {
        wins.count("child");
        expect(delegations).toMatchObject([{ id: child.body.id, state: "canceled" }]);
        await check(child.body.id, "finished");
      } else {
        wins.count("cancel");
        expect(outcomeOf(child)).toEqual(FINISHED);
        expect(delegations).toEqual([]);
      }
    });
  }
  wins.expect("cancel", "child");
});
