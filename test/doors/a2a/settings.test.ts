/** What a send over A2A may say about the work: every setting of `POST /v1/delegations`, by the official client. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { agUiPropsSchema } from "../../../src/schema/ag-ui-input.ts";
import { a2aSettingsSchema } from "../../../src/schema/delegate-settings.ts";
import { delegateRequestSchema } from "../../../src/schema/delegation.ts";
import { as, client as clientOf } from "../../support/broker.ts";
import {
  asTask,
  BINDINGS,
  jsonMessage,
  sdkClient,
  sdkMessage,
  sendParams,
  startA2aBroker,
} from "./support.ts";

const PAGE = readFileSync(new URL("../../../docs/a2a.md", import.meta.url), "utf8");
const HOUR = 3_600;
const after = (seconds: number) => new Date(Date.now() + seconds * 1_000).toISOString();

type Json = ReturnType<typeof JSON.parse>;
/** How long from one instant of the delegation to another, in seconds. */
const between = (from: string, to: string) => (one: Json) =>
  Math.round((Date.parse(one[to]) - Date.parse(one[from])) / 1_000);

const LATER = after(2 * HOUR);
/** Each setting, and where the stored delegation has it. */
const SETTINGS: Readonly<
  Record<string, readonly [given: unknown, read: (one: Json) => unknown, expected: unknown]>
> = {
  priority: [8, ({ priority }) => priority, 8],
  delay_seconds: [HOUR, between("created_at", "not_before_at"), HOUR],
  not_before: [LATER, ({ not_before_at }) => not_before_at, LATER],
  ttl_seconds: [HOUR, between("created_at", "deadline_at"), HOUR],
  deadline: [LATER, ({ deadline_at }) => deadline_at, LATER],
  max_attempts: [7, ({ max_attempts }) => max_attempts, 7],
  children_on_failure: ["keep", ({ children_on_failure }) => children_on_failure, "keep"],
  budget: [{ tokens: 9 }, ({ budget }) => budget.limit, { tokens: 9 }],
  on_budget: ["ask", ({ budget }) => budget.on_budget, "ask"],
  auto_approve: [{ actions: ["fs.*"] }, ({ auto_approve }) => auto_approve, { actions: ["fs.*"] }],
  result_schema: [{ type: "object" }, ({ result_schema }) => result_schema, { type: "object" }],
};
/** Tried on their own below. */
const OTHERS = ["parent_id", "start_within_seconds"];

async function setup() {
  const started = await startA2aBroker();
  const { url, caller } = started;
  const sdk = await sdkClient(url, "scout", caller.token);
  const send = async (metadata: Record<string, unknown>, client = sdk) => {
    const params = sendParams(sdkMessage("go"), { returnImmediately: true });
    const { id } = asTask(await client.sendMessage({ ...params, metadata }));
    return (await caller.get(id)).body;
  };
  /** The path and the reason of the only issue. */
  const refusal = async (metadata: unknown) => {
    const { body } = await started.raw.rpc("SendMessage", { message: jsonMessage("go"), metadata });
    return { code: body.error.data[0].metadata.code, issues: JSON.stringify(body.error.data) };
  };
  return { ...started, send, refusal };
}

test("A2A and AG-UI have every setting of a submit but those for which they have members of their own", () => {
  const all = Object.keys(delegateRequestSchema.shape);
  const ownMembers = ["target", "task", "message", "context_id"];
  // A2A has the delegator's metadata beside it, and push notification configs.
  expect(Object.keys(a2aSettingsSchema.shape).sort()).toEqual(
    all.filter((name) => ![...ownMembers, "metadata", "callback"].includes(name)).sort(),
  );
  expect(Object.keys(agUiPropsSchema.shape)).toEqual(
    expect.arrayContaining(all.filter((name) => !ownMembers.includes(name))),
  );
  expect([...Object.keys(SETTINGS), ...OTHERS].sort()).toEqual(Object.keys(a2aSettingsSchema.shape).sort());
});

test("the page names every setting", () => {
  const [, section = ""] = /^### Settings of a task$(.*?)^###/ms.exec(PAGE) ?? [];
  const cells = [...section.matchAll(/^\| (`.*?) \|/gm)].map(([, cell = ""]) => cell);
  const named = cells.flatMap((cell) => [...cell.matchAll(/`(\w+)`/g)].map(([, name = ""]) => name));
  expect(named.sort()).toEqual(Object.keys(a2aSettingsSchema.shape).sort());
});

test("settings in the message's metadata set nothing, and the page says where they belong", async () => {
  const { raw, caller } = await setup();
  const message = jsonMessage("go", { metadata: { errand: { priority: 8 } } });
  const configuration = { returnImmediately: true };
  const { task } = (await raw.rpc("SendMessage", { message, configuration })).body.result;
  expect((await caller.get(task.id)).body).toMatchObject({
    priority: 5,
    message: { metadata: { errand: { priority: 8 } } },
  });
  expect(PAGE.replaceAll("\n", " ").includes("beside `message`, and not into the message's")).toBe(true);
});

test("each setting arrives in the delegation, and the other metadata is the delegator's", async () => {
  const { send } = await setup();
  for (const [name, [given, read, expected]] of Object.entries(SETTINGS)) {
    const errand = { [name]: given, ...(name === "on_budget" && { budget: { tokens: 9 } }) };
    const made = await send({ errand, tone: "dry", priority: "urgent" });
    expect([name, read(made)]).toEqual([name, expected]);
    expect(made.metadata).toEqual({ tone: "dry", priority: "urgent" });
  }
});

test("the task shows its priority and its deadline", async () => {
  const { send, raw } = await setup();
  const { id, deadline_at } = await send({ errand: { priority: 8, ttl_seconds: HOUR } });
  expect((await raw.rpc("GetTask", { id })).body.result.metadata.errand).toMatchObject({
    priority: 8,
    deadlineAt: deadline_at,
  });
});

test.each(BINDINGS)("%s has the same settings", async (binding) => {
  const { send, url, caller } = await setup();
  const client = await sdkClient(url, "scout", caller.token, binding);
  const made = await send({ errand: { priority: 9, ttl_seconds: HOUR } }, client);
  expect([made.priority, between("created_at", "deadline_at")(made), made.metadata]).toEqual([9, HOUR, {}]);
});

test("an agent delegates a part of its work, and a first lease has a limit of time", async () => {
  const { url, agent, caller, clock, gateway } = await setup();
  const parent = (await caller.delegate("scout")).body;
  await agent.lease("scout");
  const helper = await as(url, "agent:helper");
  await helper.agent("helper");
  const client = await sdkClient(url, "helper", agent.token);
  const params = sendParams(sdkMessage("a part"), { returnImmediately: true });
  const metadata = { errand: { parent_id: parent.id, start_within_seconds: 60 } };
  const { id } = asTask(await client.sendMessage({ ...params, metadata }));
  expect((await agent.get(id)).body).toMatchObject({ parent_id: parent.id, delegator: "agent:scout" });
  clock.offset_ms += 61_000;
  await gateway.sweep.tick();
  expect((await agent.get(id)).body.error.code).toBe("not_picked_up");
});

test("a wrong setting is refused with its place, and nothing is stored", async () => {
  const { refusal, caller, url } = await setup();
  const cases = [
    [{ errand: { priority: 10 } }, "metadata.errand.priority"],
    [{ errand: { prio: 1 } }, "metadata.errand.prio"],
    [{ errand: { callback: { url: "https://example.com" } } }, "metadata.errand.callback"],
    [{ errand: "fast" }, "metadata.errand"],
    [{ errand: { delay_seconds: 1, not_before: LATER } }, "metadata.errand.delay_seconds"],
    [{ errand: { on_budget: "ask" } }, "metadata.errand.on_budget"],
    [{ on_budget: "ask" }, "metadata.on_budget"],
    [{ errand: { budget: { tokens: 1 } }, budget: { tokens: 2 } }, "metadata.errand.budget"],
  ] as const;
  for (const [metadata, place] of cases) {
    const { code, issues } = await refusal(metadata);
    expect([place, code]).toEqual([place, "invalid_request"]);
    expect(issues).toContain(`"${place}"`);
  }
  expect((await caller.call("GET", "/v1/delegations")).body.delegations).toEqual([]);
  // The limits of the token hold here, too.
  const { token } = (
    await clientOf(url).call("POST", "/v1/tokens", { principal: "caller:slow", max_priority: 3 })
  ).body;
  const client = await sdkClient(url, "scout", token);
  const params = sendParams(sdkMessage("go"), { returnImmediately: true });
  await expect(client.sendMessage({ ...params, metadata: { errand: { priority: 4 } } })).rejects.toThrow(
    /priority/,
  );
});
