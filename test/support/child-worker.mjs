// A worker in its own process, to be killed: leases, reports progress and replies over plain HTTP.
// workers-killed.slow.test.ts starts it. Arguments: url, token, agents (comma separated).
const [, , url, token, agents] = process.argv;

async function post(path, body) {
  const response = await fetch(`${url}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: await response.json() };
}

async function work(agent) {
  for (;;) {
    const { status, body } = await post(`/v1/agents/${agent}/leases`, { wait_seconds: 5, lease_seconds: 3 });
    if (status !== 200) throw new Error(JSON.stringify(body));
    for (const lease of body.leases) {
      const path = `/v1/leases/${lease.lease_id}`;
      await post(`${path}/heartbeat`, { progress: { message: `attempt ${lease.attempt}` } });
      // The work takes a while, so that a killed worker dies holding a lease.
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 50));
      await post(`${path}/reply`, { state: "completed", text: lease.delegation.task_preview });
    }
  }
}

process.on("disconnect", () => process.exit(0));
await Promise.all(agents.split(",").map(work));
