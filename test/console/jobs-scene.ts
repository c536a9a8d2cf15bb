/** What the jobs need: questions, a queue without a worker, one that is too long, and failures. */
import { client } from "../support/broker.ts";

const DEPLOY = { service: "search", version: "2.4.1", hosts: 12, strategy: "rolling" };

export type Api = ReturnType<typeof client>;

/** An agent asks to approve an action. Returns the delegation and the question. */
export async function propose(api: Api, task: string): Promise<{ id: string; question: string }> {
  await api.agent("deployer", { description: "Deploys services, and asks before production" });
  const { id } = (await api.delegate("deployer", { task })).body;
  const { body } = await api.lease("deployer", { wait_seconds: 5 });
  const asked = await api.interrupt(String(body.leases[0]?.lease_id), {
    text: `${task}: may I?`,
    action: { name: "deploy", arguments: DEPLOY },
    edit: true,
    expires_in_seconds: 3600,
  });
  return { id, question: asked.body.interrupt_id };
}

export async function setJobs(url: string, token: string): Promise<Api> {
  const api = client(url, token);
  for (const name of ["archivist", "researcher", "nightly", "coder"]) await api.agent(name);
  // Nobody works for it.
  for (let n = 0; n < 4; n += 1) await api.delegate("archivist", { task: `Archive project ${n}` });
  // Its only worker is busy.
  for (let n = 0; n < 15; n += 1) await api.delegate("researcher", { task: `Memo ${n}` });
  await api.lease("researcher", { lease_seconds: 3600, worker_id: "gpu-node-03" });
  for (let n = 0; n < 3; n += 1) {
    await api.delegate("nightly", { task: `Nightly check ${n}`, max_attempts: 1 });
    const { body } = await api.lease("nightly", { wait_seconds: 5 });
    await api.reply(String(body.leases[0]?.lease_id), {
      state: "failed",
      text: "",
      error: { code: "disk_full", message: "No space left on device" },
    });
  }
  return api;
}
