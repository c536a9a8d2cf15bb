/** An approval over each binding; the agent is another process that uses only the agent protocol. */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { as, startBroker } from "../../support/broker.ts";
import { until } from "../../support/until.ts";
import { asTask, BINDINGS, collect, sdkClient, sdkMessage, sendParams, stateOf, textOf } from "./support.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const PATIENT = { timeoutMs: 50_000 };

/** The example agent that asks for approval. */
async function releaser() {
  const { url } = await startBroker();
  const agent = await as(url, "agent:release");
  await agent.agent("release");
  const child = spawn(process.execPath, ["--import", "tsx", "examples/release.ts"], {
    cwd: ROOT,
    env: { ...process.env, ERRAND_URL: url, ERRAND_TOKEN: agent.token },
    stdio: "ignore",
  });
  const closed = new Promise((resolve) => child.once("close", resolve));
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await closed;
  });
  return { url, token: (await as(url, "caller:alice")).token };
}

describe.each(BINDINGS)("%s", (binding) => {
  test("a client that keeps only the task's id answers over another connection", async () => {
    const { url, token } = await releaser();
    const first = await sdkClient(url, "release", token, binding);
    const stream = collect(first.sendMessageStream(sendParams(sdkMessage("v1"))));
    await until(() => !stream.isOpen(), PATIENT);
    expect(stream.lines().at(-1)).toBe("INPUT_REQUIRED Release v1?");
    const { payload } = stream.events[0] ?? {};
    const id = payload?.$case === "task" ? payload.value.id : "";

    const later = await sdkClient(url, "release", token, binding);
    const asked = await later.getTask({ tenant: "", id });
    const interruptId = asked.status?.message?.metadata?.interruptId;
    const watching = collect(later.resubscribeTask({ tenant: "", id }));
    await until(() => watching.events.length === 1, PATIENT);
    const answer = sdkMessage("go", { taskId: id, metadata: { interruptId, decision: "approve" } });
    const done = asTask(await later.sendMessage(sendParams(answer)));
    expect([stateOf(done), textOf(done.artifacts[0]?.parts)]).toEqual(["COMPLETED", "released v1"]);
    await watching.ended;
    expect(watching.lines().at(-1)).toBe("COMPLETED released v1");

    const other = asTask(await later.sendMessage(sendParams(sdkMessage("v2"))));
    expect(stateOf(other)).toBe("INPUT_REQUIRED");
    expect(stateOf(await later.cancelTask({ tenant: "", id: other.id, metadata: undefined }))).toBe(
      "CANCELED",
    );
  }, 120_000);
});
