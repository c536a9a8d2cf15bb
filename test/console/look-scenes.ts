/** What the pictures show beside the scene: questions that were answered, and more of everything than a page can show. */
import type { client } from "../support/broker.ts";
import { setCrowd, setLongTalk, setQuestions } from "./scene.ts";

type Api = ReturnType<typeof client>;

/** A question that was approved with changes, one that was denied with a comment, one that was answered in words. */
export async function answerSome(api: Api): Promise<void> {
  await api.agent("release-bot", { description: "Tags releases, and asks before it does" });
  const ask = async (task: string, question: Record<string, unknown>, answer: Record<string, unknown>) => {
    const { id } = (await api.delegate("release-bot", { task })).body;
    const { body } = await api.lease("release-bot", { wait_seconds: 5 });
    const { interrupt_id } = (await api.interrupt(String(body.leases[0]?.lease_id), question)).body;
    await api.answer(id, interrupt_id, answer);
    const again = await api.lease("release-bot", { wait_seconds: 5 });
    await api.reply(String(again.body.leases[0]?.lease_id), { text: "Done." });
  };
  const tag = (name: string, hosts: number) => ({ name, arguments: { version: "2.4.1", hosts } });
  await ask(
    "Tag version 2.4.1",
    { text: "Tag 2.4.1 on main?", action: tag("tag", 12), edit: true },
    { decision: "approve", data: { version: "2.4.1", hosts: 3 } },
  );
  await ask(
    "Publish version 2.4.1 to the mirror",
    { text: "The mirror is nearly full. Publish all the same?", action: tag("publish", 2) },
    { decision: "deny", text: "Not before the mirror has space." },
  );
  await ask("Write the release notes", { text: "Who is the audience?" }, { text: "Operators, not users." });
}

/** A delegation that waits for three parts: one completed, one is at work, one is queued. Returns its id. */
export async function waitForParts(api: Api): Promise<string> {
  for (const name of ["lead", "builder", "tester"]) await api.agent(name);
  const start = async (target: string, more: Record<string, unknown>) => {
    const { id } = (await api.delegate(target, more)).body;
    const { body } = await api.lease(target, { wait_seconds: 5, lease_seconds: 900 });
    return { id: String(id), lease: String(body.leases[0]?.lease_id) };
  };
  const lead = await start("lead", { task: "Ship version 2.5 of the search" });
  const parent_id = lead.id;
  const notes = await start("builder", { task: "Write the notes of version 2.5", parent_id });
  await api.reply(notes.lease, { text: "Written." });
  const build = await start("builder", { task: "Build the packages of version 2.5", parent_id });
  await api.heartbeat(build.lease, { progress: { done: 2, total: 6, current_step: "linking" } });
  const test = (await api.delegate("tester", { task: "Test version 2.5 on staging", parent_id })).body.id;
  await api.await(lead.lease, [notes.id, build.id, test]);
  return lead.id;
}

/** Fills a broker that has the scene. Returns the id of a long conversation. */
export async function fillMany(api: Api, url: string, token: string): Promise<string> {
  await setCrowd(url, 2000, token);
  await setQuestions(url, 120, token);
  for (let n = 0; n < 1_000; n += 1) await api.agent(`agent-${String(n).padStart(4, "0")}`);
  for (let n = 0; n < 300; n += 1) await api.call("POST", "/v1/tokens", { principal: `caller:person-${n}` });
  for (const agent of ["coder", "scout"]) {
    const { body } = await api.lease(agent, { max: 8, lease_seconds: 900, worker_id: `${agent}-worker-2` });
    for (const [index, { lease_id }] of body.leases.entries())
      await api.heartbeat(lease_id, { progress: { done: index, total: 8, current_step: "reading" } });
  }
  const asked = (await api.call("GET", "/v1/delegations?target=asker&state=input_required&limit=60")).body;
  for (const [n, { id, interrupt }] of asked.delegations.entries()) {
    const decision = { decision: n % 3 === 2 ? "deny" : "approve" };
    await api.answer(id, interrupt.id, interrupt.requests[0]?.options ? { text: "Now" } : decision);
  }
  return await setLongTalk(url, token);
}
