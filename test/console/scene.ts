/** Agents and delegations in every state, for tests and screenshots of the console. */
import { LIMITS } from "../../src/schema/limits.ts";
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
    const { body } = await api.lease(target, {
      wait_seconds: 5,
      worker_id: `${target}-worker-1`,
      lease_seconds: 300,
    });
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

/** Many open questions; of four, three propose an action. */
export async function setQuestions(url: string, count: number, token = OPERATOR): Promise<void> {
  const api = client(url, token);
  await api.agent("asker");
  const delegations = Array.from({ length: count }, (_, n) => ({
    target: "asker",
    task: `${TASKS[n % TASKS.length]} (${n})`,
  }));
  for (let from = 0; from < count; from += 100)
    await api.call("POST", "/v1/delegations/batch", { delegations: delegations.slice(from, from + 100) });
  const leases: string[] = [];
  while (leases.length < count) {
    const { body } = await api.lease("asker", { max: LIMITS.leases.value });
    for (const { lease_id } of body.leases) leases.push(lease_id);
  }
  const ask = (lease: string, n: number) =>
    api.interrupt(lease, {
      text: `May I touch file ${n}?`,
      ...(n % 4 === 3
        ? { options: ["Now", "Tonight"] }
        : { action: { name: "fs.touch", arguments: { path: `/srv/data/${n}.json` } }, edit: true }),
      expires_in_seconds: 3600 + n,
    });
  await Promise.all(leases.map(ask));
}

/** One pixel, as a PNG. */
export const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** A delegation with questions that were answered, artifacts of each type, attempts and children. Returns its id. */
export async function setLongTalk(url: string, token = OPERATOR): Promise<string> {
  const api = client(url, token);
  await api.agent("talker");
  const { id } = (await api.delegate("talker", { task: `${TASKS[4]}. ${"Say why. ".repeat(40)}` })).body;
  const lease = async () => {
    const { body } = await api.lease("talker", { wait_seconds: 5, lease_seconds: 900 });
    return String(body.leases[0]?.lease_id);
  };
  for (const [index, question] of [
    {
      text: "Which branch?",
      options: ["main", "release/2.4", "a branch whose name says everything there is to say"],
    },
    {
      text: "May I?",
      action: { name: "deploy", arguments: { service: "search", hosts: [1, 2, 3] } },
      edit: true,
    },
  ].entries()) {
    const { body } = await api.interrupt(await lease(), question);
    const answer =
      index === 0 ? { text: "main" } : { decision: "approve", data: { service: "search", hosts: [1] } };
    await api.answer(id, body.interrupt_id, answer);
  }
  const last = await lease();
  const parts = {
    "notes.md": [{ text: "# Found\n\n- **two** causes\n- one fix\n", mediaType: "text/markdown" }],
    "fix.diff": [{ text: "--- a\n+++ b\n@@ -1 +1 @@\n-wait(1)\n+until(done)\n", mediaType: "text/x-diff" }],
    "build.sh": [{ text: "#!/bin/sh\nmake -j4\n", mediaType: "application/x-sh" }],
    "report.json": [{ data: { causes: [{ file: "a.ts", line: 3 }] } }],
    "pixel.png": [{ raw: PIXEL, mediaType: "image/png", filename: "pixel.png" }],
    "log.gz": [{ raw: PIXEL, mediaType: "application/gzip", filename: "log.gz" }],
  };
  for (const [name, content] of Object.entries(parts)) {
    await api.call("POST", `/v1/leases/${last}/artifacts`, {
      artifact: { artifactId: name, name, parts: content },
    });
  }
  for (let n = 0; n < 30; n += 1) {
    await api.heartbeat(last, {
      progress: { done: n, total: 30, current_step: `commit ${n}`, tools_used: ["git", "node"] },
    });
  }
  for (const target of ["scout", "coder"]) {
    await api.agent(target);
    await api.delegate(target, { task: `A part: ${TASKS[1]}`, parent_id: id });
  }
  return id;
}
