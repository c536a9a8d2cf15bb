/** The whole chain: an SDK client, the broker, the relay, an SDK server. The relay runs in this process. */
import type { Part } from "@a2a-js/sdk";
import { describe, expect, test, vi } from "vitest";
import { BINDINGS, collect, sdkClient, sdkMessage, sendParams, stateOf } from "../doors/a2a/support.ts";
import type { Version } from "../support/a2a-server.ts";
import { as } from "../support/broker.ts";
import { SLOW, setupRelay } from "../support/relaying.ts";
import { until } from "../support/until.ts";

vi.setConfig({ testTimeout: 120_000 });

const REMOTES: Version[] = ["1.0", "0.3"];
const KINDS = [
  { text: "the plan" },
  { raw: "AAEC/w==", filename: "plan.bin", mediaType: "application/octet-stream" },
  { url: "https://files.example/plan.pdf", filename: "plan.pdf", mediaType: "application/pdf" },
  { data: { steps: [1, { deep: null }], approved: false } },
];

const part = (content: NonNullable<Part["content"]>, more: Partial<Part> = {}): Part => ({
  content,
  metadata: undefined,
  filename: "",
  mediaType: "",
  ...more,
});
const SENT = [
  part({ $case: "text", value: "the plan" }),
  part(
    { $case: "raw", value: Buffer.from([0, 1, 2, 255]) },
    { filename: "plan.bin", mediaType: "application/octet-stream" },
  ),
  part(
    { $case: "url", value: "https://files.example/plan.pdf" },
    { filename: "plan.pdf", mediaType: "application/pdf" },
  ),
  part({ $case: "data", value: { steps: [1, { deep: null }], approved: false } }),
];

describe.each(BINDINGS)("a client of %s", (binding) => {
  test.each(REMOTES)(
    "a server of A2A %s: its question outlives the stream, and is answered on another connection",
    async (version) => {
      let ask = () => {};
      const { url, server } = await setupRelay({
        version,
        async turn(turn) {
          turn.begin();
          if (turn.number > 1) return turn.status("COMPLETED", { parts: KINDS });
          turn.artifact("plan", "step one");
          await new Promise<void>((resolve) => {
            ask = resolve;
          });
          return turn.status("INPUT_REQUIRED", "Deploy?");
        },
      });
      const { token } = await as(url, "caller:alice");
      const leaving = new AbortController();
      const first = await sdkClient(url, "remote", token, binding);
      const stream = collect(
        first.sendMessageStream(
          sendParams(sdkMessage("deploy", { parts: SENT, metadata: { ticket: "T-7" } })),
          {
            signal: leaving.signal,
          },
        ),
      );
      await until(() => stream.events.some(({ payload }) => payload?.$case === "artifactUpdate"), SLOW);
      const { payload } = stream.events[0] ?? {};
      const id = payload?.$case === "task" ? payload.value.id : "";
      // No client is connected when it asks.
      leaving.abort();
      await stream.ended.catch(() => undefined);
      ask();

      const seen = [];
      for (let visit = 0; visit < 3; visit += 1) {
        const visitor = await sdkClient(url, "remote", token, binding);
        const task = await until(async () => {
          const now = await visitor.getTask({ tenant: "", id });
          return stateOf(now) === "INPUT_REQUIRED" ? now : undefined;
        }, SLOW);
        const artifacts = task.artifacts.map(({ artifactId, parts }) => [artifactId, parts]);
        seen.push({ interrupt: task.status?.message?.metadata?.interruptId, artifacts });
      }
      expect(seen[0]?.interrupt).toMatch(/^int_/);
      expect(seen[1]).toEqual(seen[0]);
      expect(seen[2]).toEqual(seen[0]);

      const later = await sdkClient(url, "remote", token, binding);
      const metadata = { interruptId: seen[0]?.interrupt, decision: "approve" };
      await later.sendMessage(sendParams(sdkMessage("go", { taskId: id, metadata })));
      const done = await until(async () => {
        const now = await later.getTask({ tenant: "", id });
        return stateOf(now) === "COMPLETED" ? now : undefined;
      }, SLOW);
      const said = done.status?.message?.parts ?? [];
      expect(said.map(({ content }) => content?.$case)).toEqual(["text", "raw", "url", "data"]);
      const shown = ({ content, filename, mediaType }: Part) => {
        // The SDK's HTTP+JSON 0.3 has no field for file names.
        return { content, mediaType, ...(binding !== "HTTP+JSON of 0.3" && { filename }) };
      };
      expect(said.map(shown)).toEqual(SENT.map(shown));

      expect(server.tasks()).toHaveLength(1);
      expect(server.turns.map(({ text }) => text.trim())).toEqual(["the plan", "go"]);
      const named = binding === "HTTP+JSON of 0.3" ? KINDS.map(({ filename: _, ...kind }) => kind) : KINDS;
      expect(server.turns[0]?.message.parts).toMatchObject(named);
      expect(server.turns[0]?.message.metadata).toEqual({ ticket: "T-7", delegation_id: expect.any(String) });
      expect(server.turns[1]?.message.metadata).toMatchObject({ decision: "approve" });
    },
  );
});
