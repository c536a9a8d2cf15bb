// A worker in its own process, to be killed: works as root, mid and leaf over plain HTTP. A root and a mid delegate two
// parts, wait for them without a lease, and reply when they have them. parked-trees.slow.test.ts starts it. A call that
// fails is left alone: the lease expires, or its answer was lost. Arguments: urls (comma
// separated), and the token of each agent as JSON.
const [, , list, given] = process.argv;
const urls = list.split(",");
const tokens = JSON.parse(given);
const BELOW = { root: "mid", mid: "leaf" };
const PARTS = 2;
let calls = process.pid;

async function post(agent, path, body, headers = {}) {
  calls += 1;
  const response = await fetch(`${urls[calls % urls.length]}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${tokens[agent]}`, "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: await response.json() };
}

async function workOn({ lease_id, delegation, awaited }) {
  const path = `/v1/leases/${lease_id}`;
  const agent = delegation.target;
  const below = BELOW[agent];
  let children = awaited?.children;
  if (below !== undefined && children === undefined) {
    const ids = [];
    for (let n = 0; n < PARTS; n += 1) {
      const part = { target: below, task: `part ${n}`, parent_id: delegation.id };
      const made = await post(agent, "/v1/delegations", part, { "idempotency-key": `${delegation.id}-${n}` });
      if (made.status >= 300) return;
      ids.push(made.body.id);
    }
    const waits = await post(agent, `${path}/await`, { children: ids });
    if (waits.status !== 200 || waits.body.awaits) return;
    children = waits.body.awaited.children;
  }
  const text = children?.map(({ delegation: child }) => child.reply.parts[0].text).join("") ?? "x";
  await post(agent, `${path}/reply`, { state: "completed", text });
}

async function work(agent) {
  for (;;) {
    try {
      const { status, body } = await post(agent, `/v1/agents/${agent}/leases`, {
        wait_seconds: 2,
        lease_seconds: 2,
      });
      if (status !== 200) throw new Error(String(status));
      for (const lease of body.leases) await workOn(lease);
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

process.on("disconnect", () => process.exit(0));
await Promise.all(["root", "mid", "leaf"].map(work));
