/** One delegation to the agent `scout`, and the library's agent that works on it with this handler until the test ends. */
import { onTestFinished } from "vitest";
import { Agent } from "../../src/client/agent.ts";
import type { AgentEvent, Handler } from "../../src/client/work.ts";
import { client, OPERATOR, startBroker } from "./broker.ts";
import { until } from "./until.ts";

export async function handled(handler: Handler) {
  const { url } = await startBroker();
  const api = client(url);
  await api.agent("scout");
  const id: string = (await api.delegate("scout")).body.id;
  const events: AgentEvent[] = [];
  const onEvent = (event: AgentEvent) => events.push(event);
  const agent = new Agent({ url, token: OPERATOR, agent: "scout", onEvent }, handler);
  const running = agent.run();
  onTestFinished(async () => {
    await agent.stop();
    await running;
  });
  const got = async () => (await api.get(id)).body;
  const ended = () =>
    until(
      async () => {
        const body = await got();
        return body.finished_at !== null && body;
      },
      { timeoutMs: 50_000 },
    );
  return { api, id, events, got, ended };
}
