/** Handlers that ask, with a real broker: parked, answered, run again from the start. */
import { Readable } from "node:stream";
import { describe, expect, expectTypeOf, onTestFinished, test } from "vitest";
import { z } from "zod";
import {
  Agent,
  type AgentEvent,
  type AgentOptions,
  bytesOf,
  Delegator,
  dataOf,
  type Handler,
  ParkedError,
  textOf,
} from "../../../src/index.ts";
import { as, startBroker } from "../../support/broker.ts";
import { until } from "../../support/until.ts";
import { losingAnswers } from "../lossy-fetch.ts";

const PATIENT = { timeoutSeconds: 50 };

/** A broker with the agent scout, and a caller. */
async function setup() {
  const { url } = await startBroker();
  const token = await as(url, "agent:scout");
  await token.agent("scout", { backoff: { initial_ms: 0 } });
  const alice = await as(url, "caller:alice");
  const delegator = new Delegator({ url, token: alice.token });
  const send = async () => (await delegator.delegate({ target: "scout", task: "x" })).id;
  const scout = (handler: Handler, options: Partial<AgentOptions> = {}) => {
    const events: AgentEvent[] = [];
    const onEvent = (event: AgentEvent) => events.push(event);
    const agent = new Agent({ url, token: token.token, agent: "scout", onEvent, ...options }, handler);
    agent.run().catch(() => undefined);
    onTestFinished(() => agent.stop(0));
    return { agent, events, types: () => events.map(({ type }) => type) };
  };
  /** Waits for the question and returns it. */
  const asked = async (id: string) => {
    const { interrupt } = await delegator.wait(id, PATIENT);
    if (!interrupt) throw new Error("it asks nothing");
    return interrupt;
  };
  const textsAsked = async (id: string) => (await asked(id)).requests.map(({ message }) => textOf(message));
  return { url, token, delegator, send, scout, asked, textsAsked };
}

describe("a typed ask", () => {
  const schema = z.object({ count: z.int(), unit: z.string().optional() });

  test("shows the schema, and returns data of its type", async () => {
    const { delegator, send, scout, asked } = await setup();
    const id = await send();
    const seen: unknown[] = [];
    scout(async (work) => {
      const { data } = await work.ask("How many?", { schema });
      expectTypeOf(data).toEqualTypeOf<{ count: number; unit?: string | undefined }>();
      const edited = await work.ask({
        requestId: "go",
        action: { name: "deploy", arguments: { count: 1 } },
        edit: true,
        schema: schema.transform(({ count }) => count * 2),
      });
      expectTypeOf(edited.data).toEqualTypeOf<number | undefined>();
      const [first, second] = await work.askAll(["Why?", { text: "When?", schema: z.string() }]);
      expectTypeOf(first.data).toEqualTypeOf<unknown>();
      expectTypeOf(second.data).toEqualTypeOf<string>();
      seen.push(data, edited.data, first.text, second.data);
      return "done";
    });
    const first = await asked(id);
    expect(first.requests[0]?.schema).toMatchObject({
      type: "object",
      properties: { count: { type: "integer" }, unit: { type: "string" } },
      required: ["count"],
    });
    const wrong = delegator.answer(id, first.id, { data: { count: "3" } });
    await expect(wrong).rejects.toMatchObject({ code: "invalid_request" });
    await delegator.answer(id, first.id, { data: { count: 3 } });
    await asked(id);
    await delegator.approve(id, { data: { count: 4 } });
    const last = await asked(id);
    const [why = "", when = ""] = last.requests.map(({ request_id }) => request_id);
    await delegator.answer(id, last.id, { answers: { [why]: "so", [when]: { data: "now" } } });
    expect((await delegator.wait(id, PATIENT)).state).toBe("completed");
    expect(seen).toEqual([{ count: 3 }, 8, "so", "now"]);
  });

  test("fails the work with the reason if the data do not fit what JSON Schema cannot say", async () => {
    const { delegator, send, scout, asked } = await setup();
    const id = await send();
    const errors: unknown[] = [];
    const even = schema.refine(({ count }) => count % 2 === 0, { path: ["count"], error: "must be even" });
    scout(async (work) => String((await work.ask("How many?", { schema: even })).data.count), {
      onError: (error) => errors.push(error),
    });
    await delegator.answer(id, (await asked(id)).id, { data: { count: 3 } });
    expect((await delegator.wait(id, PATIENT)).error).toMatchObject({
      message: "The agent failed: InvalidDataError.",
    });
    expect(errors).toMatchObject([{ issues: [{ path: "count", reason: "must be even" }] }]);
  });

  test("needs a schema that people can be shown", async () => {
    const { delegator, send, scout } = await setup();
    const id = await send();
    const errors: unknown[] = [];
    const bare = { "~standard": { validate: (value: unknown) => ({ value }) } };
    scout(async (work) => (await work.ask("?", { schema: bare })).text, {
      onError: (error) => errors.push(error),
    });
    expect((await delegator.wait(id, PATIENT)).state).toBe("failed");
    expect(String(errors[0])).toContain("pass a JSON Schema");
  });
});

describe("a file", () => {
  test("of any kind arrives as one artifact, in order with other output", async () => {
    const { delegator, send, scout } = await setup();
    const id = await send();
    const bytes = Uint8Array.from({ length: 1_500_000 }, (_, n) => (n * 7) % 256);
    scout(async (work) => {
      await work.file("old.png", "to be replaced", { artifactId: "image" });
      await work.file("image.png", bytes, { artifactId: "image", mediaType: "image/png" });
      void work.file("run.log", Readable.from([Buffer.from("one\n"), Buffer.from("two\n")]));
      return { data: { files: 2 } };
    });
    const { artifacts, reply } = await delegator.wait(id, PATIENT);
    const ofId = (wanted: string) => artifacts.find(({ artifactId }) => artifactId === wanted);
    expect(Buffer.compare(bytesOf(ofId("image")), bytes)).toBe(0);
    expect(ofId("image")).toMatchObject({ name: "image.png" });
    expect(Buffer.from(bytesOf(ofId("run.log"))).toString()).toBe("one\ntwo\n");
    expect(dataOf(reply)).toEqual({ files: 2 });
  });

  test("that is too large for the broker says so", async () => {
    const { delegator, send, scout } = await setup();
    const id = await send();
    const codes: unknown[] = [];
    scout(async (work) => {
      await work.file("big", new Uint8Array(3_000_000)).catch((error) => codes.push(error.code));
      return "without it";
    });
    expect((await delegator.wait(id, PATIENT)).state).toBe("completed");
    expect(codes).toEqual(["payload_too_large"]);
  });
});

describe("ask", () => {
  test("ends the run; the answer starts it again, and there the same ask returns the answer", async () => {
    const { delegator, send, scout, asked } = await setup();
    const id = await send();
    const seen: unknown[] = [];
    const { events, types } = scout(async (work) => {
      seen.push(["begins", work.history.length, work.answer?.text]);
      try {
        const branch = await work.ask("Which branch?", {
          options: ["main", "next"],
          schema: { type: "number" },
        });
        return `on ${branch.text}, ${branch.data}`;
      } catch (error) {
        seen.push(["ends", error instanceof ParkedError, work.signal.reason === error]);
        throw error;
      } finally {
        seen.push("finally");
      }
    });
    const interrupt = await asked(id);
    expect(interrupt).toMatchObject({ kind: "input", requests: [{ options: ["main", "next"] }] });
    await until(() => types().includes("parked"), { what: "the end of the run" });
    expect(events.at(-1)).toMatchObject({ type: "parked", interruptId: interrupt.id });
    expect(await delegator.get(id)).toMatchObject({ state: "input_required", lease: null });

    await delegator.answer(id, interrupt.id, { text: "main", data: 7 });
    const { state, reply, attempt, version } = await delegator.wait(id, PATIENT);
    expect([state, reply && textOf(reply), attempt]).toEqual(["completed", "on main, 7", 1]);
    expect(seen).toEqual([
      ["begins", 0, undefined],
      ["ends", true, true],
      "finally",
      ["begins", 2, "main"],
      "finally",
    ]);
    // Sent, leased, asked, answered, leased, completed: asking again added no event.
    expect(version).toBe(6);
    await until(() => types().length === 4);
    expect(types()).toEqual(["leased", "parked", "leased", "replied"]);
  });

  test("works one question after the other, the same text included, each answered once, in any worker", async () => {
    const { delegator, send, scout, textsAsked } = await setup();
    const id = await send();
    const handler: Handler = async ({ ask }) => {
      const first = await ask("Go on?");
      const second = await ask("Go on?");
      const third = await ask({ text: `Really ${Math.random()}?`, requestId: "really" });
      return [first, second, third].map(({ decision }) => decision).join(" ");
    };
    const one = scout(handler);
    expect(await textsAsked(id)).toEqual(["Go on?"]);
    await one.agent.stop();
    await delegator.approve(id);
    scout(handler);
    expect(await textsAsked(id)).toEqual(["Go on?"]);
    await delegator.deny(id);
    expect((await textsAsked(id))[0]).toMatch(/^Really/);
    await delegator.approve(id);
    const { reply } = await delegator.wait(id, PATIENT);
    expect(reply?.parts).toEqual([{ text: "approve deny approve" }]);
  });

  test("for a credential is auth_required and expires after its own time; answers survive a retry", async () => {
    const { delegator, send, scout, asked } = await setup();
    const id = await send();
    scout(async (work) => {
      const token = await work.ask(
        { text: "A token?", requestId: "token" },
        { kind: "auth", expiresInSeconds: 90 },
      );
      if (work.attempt > 1) return JSON.stringify([token.data, [...work.answers.keys()]]);
      return { state: "failed", error: { code: "busy", message: "later", retryable: true } };
    });
    const { id: interruptId, kind, raised_at, expires_at } = await asked(id);
    expect([kind, Date.parse(expires_at) - Date.parse(raised_at)]).toEqual(["auth", 90_000]);
    await delegator.answer(id, interruptId, { data: "secret" });
    const { reply, attempt } = await delegator.wait(id, PATIENT);
    expect([attempt, reply && textOf(reply)]).toEqual([2, '["secret",["token"]]']);
  });

  test("raises one question although responses get lost, and output arrives before it", async () => {
    const { delegator, send, scout, asked } = await setup();
    const id = await send();
    const fetch = losingAnswers((call) => call.endsWith("/interrupt"), 2);
    const { events, types } = scout(
      async (work) => {
        void work.artifact({ artifactId: "plan", parts: [{ text: "first this" }] });
        return (await work.ask("Good?")).text;
      },
      { fetch },
    );
    const interrupt = await asked(id);
    expect((await delegator.get(id)).artifacts).toMatchObject([{ parts: [{ text: "first this" }] }]);
    await until(() => types().includes("parked"));
    expect(fetch.lost).toHaveLength(2);
    expect(events.find(({ type }) => type === "parked")).toMatchObject({ interruptId: interrupt.id });
    await delegator.approve(id);
    const { state, history } = await delegator.wait(id, PATIENT);
    expect([state, history.length]).toEqual(["completed", 2]);
  });

  test("that is not awaited, or is caught, still parks the work without other effects", async () => {
    const { delegator, send, scout, textsAsked } = await setup();
    const id = await send();
    let isFirst = true;
    // The reply would be faster than the question, if it did not wait for the question.
    const lateQuestion: typeof fetch = (input, init) => {
      if (!isFirst || !String(input).endsWith("/interrupt")) return fetch(input, init);
      isFirst = false;
      return Promise.reject(new TypeError("fetch failed", { cause: { code: "ECONNRESET" } }));
    };
    const handler: Handler = async (work) => {
      if (work.answers.size === 0) {
        void work.ask("First?");
        return "not sent";
      }
      const second = await work.ask("Second?").catch(() => undefined);
      return second ? "done" : "not sent either";
    };
    scout(handler, { fetch: lateQuestion });
    expect(await textsAsked(id)).toEqual(["First?"]);
    await delegator.approve(id);
    expect(await textsAsked(id)).toEqual(["Second?"]);
    await delegator.approve(id);
    expect((await delegator.wait(id, PATIENT)).reply?.parts).toEqual([{ text: "done" }]);
  });

  test("that the broker refuses throws in the handler", async () => {
    const { delegator, send, scout } = await setup();
    const id = await send();
    scout(async (work) => {
      const refused = await work
        .askAll(Array.from({ length: 33 }, (_, n) => `${n}?`))
        .catch((error: unknown) => error);
      return refused instanceof Error && "code" in refused ? String(refused.code) : "taken";
    });
    expect((await delegator.wait(id, PATIENT)).reply?.parts).toEqual([{ text: "invalid_request" }]);
  });

  test("in work that is canceled meanwhile ends with the cancel", async () => {
    const { delegator, send, scout } = await setup();
    const id = await send();
    let reason: unknown;
    const { types } = scout(async (work) => {
      await delegator.cancel(id);
      reason = await work.ask("Which?").catch((error: unknown) => error);
    });
    await until(() => types().includes("lost"), { what: "the loss" });
    expect(reason).toMatchObject({ name: "LeaseLostError", reason: "canceled" });
    expect((await delegator.get(id)).state).toBe("canceled");
  });
});

test("for several answers at once returns them in the order of asking", async () => {
  const { delegator, send, scout, asked } = await setup();
  const id = await send();
  scout(async (work) => {
    const [host, token, again] = await work.askAll(
      ["Which host?", { text: "A token?", requestId: "token", schema: { type: "object" } }, "Which host?"],
      { kind: "auth" },
    );
    return [host.text, JSON.stringify(token.data), token.decision, again.text].join(" ");
  });
  const interrupt = await asked(id);
  const [first = "", token = "", second = ""] = interrupt.requests.map(({ request_id }) => request_id);
  expect([interrupt.requests.length, token]).toEqual([3, "token"]);
  await delegator.answer(id, null, {
    answers: { [first]: "db1", [second]: "db2", token: { decision: "approve", data: { t: 7 } } },
  });
  expect((await delegator.wait(id, PATIENT)).reply?.parts).toEqual([{ text: 'db1 {"t":7} approve db2' }]);
});

describe("a question that is returned", () => {
  test("parks the work; the next run finds the answer", async () => {
    const { delegator, send, scout, textsAsked } = await setup();
    const id = await send();
    const { types } = scout((work) =>
      work.answers.size < 2 ? work.question("Once more?") : `${work.answer?.decision}`,
    );
    expect(await textsAsked(id)).toEqual(["Once more?"]);
    await delegator.approve(id);
    expect(await textsAsked(id)).toEqual(["Once more?"]);
    await delegator.deny(id);
    expect((await delegator.wait(id, PATIENT)).reply?.parts).toEqual([{ text: "deny" }]);
    await until(() => types().length === 6);
    expect(types()).toEqual(["leased", "parked", "leased", "parked", "leased", "replied"]);
  });

  test("repeated endlessly fails if it has a requestId; so does a question that the broker refuses", async () => {
    const { delegator, send, scout } = await setup();
    const id = await send();
    scout(({ text, question }) =>
      text === "x"
        ? question({ requestId: "b", text: "Which?" })
        : question([{ requestId: "a" }, { requestId: "a" }]),
    );
    await delegator.wait(id, PATIENT);
    await delegator.approve(id);
    const { state, error } = await delegator.wait(id, PATIENT);
    expect([state, error?.message]).toEqual([
      "failed",
      "the handler asked a question that is already answered (b); read work.answers",
    ]);
    const other = await delegator.delegate({ target: "scout", task: "y" });
    expect(await delegator.wait(other.id, PATIENT)).toMatchObject({
      state: "failed",
      error: { code: "invalid_request", message: expect.stringContaining("refused the agent's question") },
    });
  });
});
