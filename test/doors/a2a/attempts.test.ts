/** What a client sees when an attempt is lost: the task changes state, and dropped artifacts are shown as dropped. */
import { expect, test } from "vitest";
import { until } from "../../support/until.ts";
import {
  collect,
  collectFromStart,
  leaseOf,
  rawCalls,
  sdkClient,
  sdkMessage,
  sendParams,
  startA2aBroker,
} from "./support.ts";

async function setup() {
  const broker = await startA2aBroker();
  await broker.agent.agent("scout", { limits: { max_attempts: 2 }, backoff: { initial_ms: 0 } });
  const client = await sdkClient(broker.url, "scout", broker.caller.token);
  const stream = await collectFromStart(client.sendMessageStream(sendParams(sdkMessage("work"))));
  const { lease, id } = await leaseOf(broker.agent);
  const artifact = (on: string, artifactId: string, text: string, more = {}) =>
    broker.agent.call("POST", `/v1/leases/${on}/artifacts`, {
      artifact: { artifactId, parts: [{ text }] },
      ...more,
    });
  return { ...broker, client, stream, lease, id, artifact };
}

test("the lease after an expired one drops its artifacts, in the stream and in the task", async () => {
  const { agent, stream, lease, id, artifact, clock, gateway, caller, url } = await setup();
  await artifact(lease, "x", "half");
  // A body that is dropped before it was read is shown without its text.
  await until(() => stream.lines().includes("artifact x half"));
  clock.offset_ms += 61_000;
  await gateway.sweep.tick();
  const next = await leaseOf(agent);
  const { body } = await rawCalls(url, caller.token).rpc("GetTask", { id });
  expect("artifacts" in body.result).toBe(false);
  await artifact(next.lease, "y", "whole");
  await agent.reply(next.lease, { text: "done" });
  await stream.ended;
  expect(stream.lines()).toEqual([
    "task SUBMITTED",
    "WORKING",
    "artifact x half",
    "SUBMITTED",
    "artifact x ",
    "WORKING",
    "artifact y whole",
    "COMPLETED done",
  ]);
  const dropped = stream.events.flatMap(({ payload }) =>
    payload?.$case === "artifactUpdate" ? [payload.value.artifact?.metadata?.dropped ?? false] : [],
  );
  expect(dropped).toEqual([false, true, false]);
});

test("a stream drops artifacts when the record does, whatever the reason of a release", async () => {
  const { url, agent, caller, clock, gateway } = await startA2aBroker();
  const client = await sdkClient(url, "scout", caller.token);
  const stream = await collectFromStart(client.sendMessageStream(sendParams(sdkMessage("work"))));
  const { lease, id } = await leaseOf(agent);
  const put = (held: string, text: string) =>
    agent.call("POST", `/v1/leases/${held}/artifacts`, { artifact: { artifactId: "x", parts: [{ text }] } });
  await put(lease, "before the question");
  const { interrupt_id } = (await agent.interrupt(lease, { kind: "auth", text: "who?" })).body;
  await caller.answer(id, interrupt_id, { text: "me" });
  // An unconfirmed lease changes no artifacts.
  await agent.lease("scout", { confirm_within_seconds: 1 });
  clock.offset_ms += 3_000;
  await gateway.sweep.tick();
  expect((await caller.get(id)).body.artifacts).toHaveLength(1);
  await until(() => stream.lines().length === 7);
  expect(stream.lines()).toEqual([
    "task SUBMITTED",
    "WORKING",
    "artifact x before the question",
    "AUTH_REQUIRED who?",
    "SUBMITTED",
    "WORKING",
    "SUBMITTED",
  ]);
  await agent.release((await leaseOf(agent)).lease, { reason: "connection_lost" });
  expect((await caller.get(id)).body.artifacts).toEqual([]);
  await until(() => stream.lines().length === 10);
  expect(stream.lines().slice(7)).toEqual(["WORKING", "artifact x ", "SUBMITTED"]);
});

test("a task fails with the broker's error when all its attempts are lost", async () => {
  const { agent, stream, clock, gateway } = await setup();
  for (const _ of [1, 2]) {
    clock.offset_ms += 61_000;
    await gateway.sweep.tick();
    if (stream.isOpen()) await agent.lease("scout", { wait_seconds: 1 });
  }
  await until(() => !stream.isOpen());
  const last = stream.events.at(-1)?.payload;
  expect(last?.$case === "statusUpdate" && last.value.metadata?.errand).toMatchObject({
    error: { code: "attempts_exhausted" },
  });
  expect(stream.lines().at(-1)).toMatch(/^FAILED \S/);
});

test("the status shows the message of an agent that fails or rejects the task", async () => {
  const { agent, stream, lease, client } = await setup();
  await agent.reply(lease, {
    state: "failed",
    text: undefined,
    error: { code: "no_disk", message: "The disk is full." },
  });
  await stream.ended;
  expect(stream.lines().at(-1)).toBe("FAILED The disk is full.");
  const refused = collect(client.sendMessageStream(sendParams(sdkMessage("more"))));
  await agent.reply((await leaseOf(agent)).lease, { state: "rejected", text: "Not mine." });
  await refused.ended;
  expect(refused.lines().at(-1)).toBe("REJECTED Not mine.");
});

test("each artifact is sent once, whether it came before the reply or with it", async () => {
  const { agent, stream, lease, artifact } = await setup();
  await artifact(lease, "x", "one");
  await artifact(lease, "x", "two", { append: true });
  await agent.reply(lease, {
    text: "done",
    artifacts: [
      { artifactId: "x", parts: [{ text: "one" }, { text: "two" }] },
      { artifactId: "y", parts: [{ text: "new" }] },
    ],
  });
  await stream.ended;
  expect(stream.lines().slice(2)).toEqual([
    "artifact x one",
    "artifact x two",
    "artifact y new",
    "COMPLETED done",
  ]);
});
