/**
 * The scene of `npm run prove -- agents --scene` with a scripted program: a worker is killed while a person is asked, and an hour
 * later another one goes on. The workers are processes. Needs a build.
 */
import { once } from "node:events";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { as, client, startBroker } from "../../support/broker.ts";
import { callModern } from "../../support/mcp.ts";
import { passes } from "../../support/outage.ts";
import { errand } from "../../support/program.ts";
import { run, say, scripted } from "./program.ts";

const COMMAND = "./deploy.sh --to production";
const EDITED = "./deploy.sh --to staging";
const HOUR = 3_600;
const MINUTE = 60;

test.each([
  ["park", [[run(COMMAND), say("Done.")]]],
  // The process ends with its worker, so another one is told the decision, and makes the call again.
  ["hold", [[run(COMMAND)], [run(COMMAND), say("Done.")]]],
])(
  "a call of a killed worker, approved an hour later with other arguments, runs once (--ask %s)",
  async (ask, turns) => {
    const broker = await startBroker();
    const { url } = broker;
    const api = client(url);
    await api.agent("coder");
    const [alice, ann] = await Promise.all([as(url, "caller:alice"), as(url, "approver:ann")]);
    const worker = (await as(url, "agent:coder")).token;
    const { folder, program, ran, log } = scripted({ turns });
    const work = () =>
      errand(folder, ["work", "--agent", "coder", "--preset", "claude", "--ask", ask], {
        PATH: [dirname(program), process.env.PATH].join(":"),
        XDG_STATE_HOME: join(folder, "state"),
        ERRAND_URL: url,
        ERRAND_TOKEN: worker,
      });
    const tool = async (name: string, args: Record<string, unknown>) =>
      (await callModern(url, alice.token, name, args)).body.result.structuredContent;

    const first = work();
    const sent = await tool("delegate_task_async", { agent: "coder", task: "deploy it" });
    const { delegation_id: id, cursor } = sent;
    const asked = await tool("wait_for_results", { cursor, wait_seconds: 30 });
    expect(asked.results).toMatchObject([{ delegation_id: id, state: "input_required" }]);
    const { body } = await ann.get(id);
    expect(body.interrupt.requests).toMatchObject([
      { action: { name: "Bash", arguments: { command: COMMAND } }, edit: true },
    ]);
    expect(body.lease === null).toBe(ask === "park");

    first.child.kill("SIGKILL");
    await once(first.child, "close");
    for (let passed = 0; passed < HOUR; passed += MINUTE) await passes(broker, MINUTE);
    expect((await ann.get(id)).body).toMatchObject({ state: "input_required", lease: null, attempt: 1 });
    expect(ran()).toEqual([]);

    const waiting = tool("wait_for_results", { cursor: asked.cursor, wait_seconds: 30 });
    await ann.answer(id, body.interrupt.id, { decision: "approve", data: { command: EDITED } });
    // For so long, the broker keeps a parked call for the worker that has its conversation.
    await passes(broker, MINUTE);
    work();
    expect((await waiting).results).toMatchObject([
      { delegation_id: id, state: "completed", reply: { text: "Done." } },
    ]);
    expect([ran(), log("start").length]).toEqual([[EDITED], 2]);
  },
);
