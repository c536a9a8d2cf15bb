/** Agents and delegations in every state, for tests and screenshots of the console. */
import { client, OPERATOR } from "../support/broker.ts";

const TASKS = [
  "Fix the flaky login test",
  "Count the words in the quarterly report",
  "Summarize yesterday's incidents for the weekly",
  "Translate the release notes into French",
  "Find out why the nightly build takes twice as long since Tuesday and propose what to do about it",
];
/** The longest name that an agent can have. */
export const LONG = "deploy-the-service-with-a-very-long-name-that-goes-on-and-on".slice(0, 63);

type Api = ReturnType<typeof client>;
export interface Scene {
  readonly api: Api;
  /** The delegations by what they show. */
  readonly ids: Record<string, string>;
  readonly leases: Record<string, string>;
}

/** A handful of delegations; every state once. */
export async function setScene(url: string, token = OPERATOR): Promise<Scene> {
  const api = client(url, token);
  const as = async (principal: string) =>
    client(url, String((await api.call("POST", "/v1/tokens", { principal })).body.token));
  const alice = await as("caller:alice");
  const ci = await as("caller:ci-pipeline");
  for (const name of ["coder", "scout", "deployer", "nightly", LONG]) {
    await api.agent(name, {
      description: `The ${name} of the scene`,
      limits: { interrupt_ttl_seconds: 3600 },
    });
  }
  const ids: Record<string, string> = {};
  const leases: Record<string, string> = {};
  const start = async (key: string, by: Api, target: string, more: Record<string, unknown>) => {
    ids[key] = String((await by.delegate(target, more)).body.id);
    const { body } = await api.lease(target, { wait_seconds: 5, worker_id: `${target}-worker-1` });
    leases[key] = String(body.leases[0]?.lease_id);
  };
  await start("completed", alice, "scout", { task: TASKS[1] });
  await api.call("POST", `/v1/leases/${leases.completed}/artifacts`, {
    artifact: { artifactId: "a1", name: "report.json", parts: [{ data: { words: 1204, pages: 3 } }] },
  });
  await api.reply(leases.completed ?? "", { text: "1 204 words on three pages." });
  await start("failed", ci, "nightly", { task: "Run the nightly checks", max_attempts: 1 });
  await api.reply(leases.failed ?? "", {
    state: "failed",
    text: "",
    error: { code: "disk_full", message: "No space left on device /var/lib/build" },
  });
  ids.canceled = String((await alice.delegate("nightly", { task: TASKS[3] })).body.id);
  await alice.cancel(ids.canceled, { reason: "not needed any more" });
  await start("working", alice, "coder", { task: TASKS[0] });
  await api.heartbeat(leases.working ?? "", {
    progress: {
      done: 5,
      total: 8,
      current_step: "running the tests",
      tools_used: ["bash", "edit"],
      eta_seconds: 90,
    },
  });
  await api.message(ids.working ?? "", "Only the login test, please; leave the others alone.");
  await start("asking", alice, "deployer", { task: "Deploy the new search to production" });
  await api.interrupt(leases.asking ?? "", {
    text: "Version 2.4.1 passed on staging. Deploy it to production?",
    request_id: "deploy",
    action: { name: "deploy", arguments: { service: "search", version: "2.4.1", hosts: 12 } },
    edit: true,
    expires_in_seconds: 1800,
  });
  await start("options", ci, "scout", { task: TASKS[2] });
  await api.interrupt(leases.options ?? "", {
    text: "Which week?",
    request_id: "week",
    options: ["This week", "Last week", "Both"],
    expires_in_seconds: 3600,
  });
  await start("form", alice, "coder", { task: TASKS[4] });
  await api.interrupt(leases.form ?? "", {
    text: "I need a few details to go on.",
    request_id: "details",
    schema: {
      type: "object",
      properties: {
        branch: { type: "string", title: "Branch" },
        depth: { type: "integer", title: "Commits to look at", default: 50 },
        mode: { type: "string", enum: ["quick", "thorough"], title: "How" },
        notify: { type: "boolean", title: "Tell me when it is done" },
      },
      required: ["branch", "mode"],
    },
    expires_in_seconds: 3600,
  });
  ids.queued = String((await ci.delegate("nightly", { task: "Rotate the logs" })).body.id);
  ids.long = String((await alice.delegate(LONG, { task: `${"x".repeat(40)} ${TASKS[4]}` })).body.id);
  await api.call("POST", "/v1/agents/nightly/pause");
  return { api, ids, leases };
}

/** Many live delegations of several agents. */
export async function setCrowd(url: string, count: number, token = OPERATOR): Promise<void> {
  const api = client(url, token);
  const names = ["coder", "scout", "deployer", "nightly"];
  for (let from = 0; from < count; from += 100) {
    const delegations = Array.from({ length: Math.min(100, count - from) }, (_, index) => ({
      target: names[(from + index) % names.length],
      task: `${TASKS[index % TASKS.length]} (${from + index})`,
    }));
    await api.call("POST", "/v1/delegations/batch", { delegations });
  }
}
