// A worker in its own process, to be suspended: polls for every agent at once over plain HTTP, replies, and sends the
// results. hand-off-silent.slow.test.ts starts it. Arguments: url, token, agents (comma separated).
const [, , url, token, agents] = process.argv;

async function post(path, body) {
  const response = await fetch(`${url}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: await response.json() };
}

async function poll(agent) {
  const ask = { wait_seconds: 60, confirm_within_seconds: 1, worker_id: "silent" };
  const { body } = await post(`/v1/agents/${agent}/leases`, ask);
  const replies = [];
  for (const { lease_id } of body.leases) {
    const reply = await post(`/v1/leases/${lease_id}/reply`, { state: "completed", text: "too late" });
    replies.push({ status: reply.status, reason: reply.body.details?.reason });
  }
  return replies;
}

process.on("disconnect", () => process.exit(0));
process.on("message", async () => {
  const replies = await Promise.all(agents.split(",").map(poll));
  process.send(replies.flat());
});
