// A worker in its own process, to be killed: takes work of one agent over plain HTTP, makes a heartbeat, and replies.
// conversations.slow.test.ts starts it. A call that fails is left alone: the lease expires, or its answer was lost.
// Arguments: urls (comma separated), agent, token.
const [, , list, agent, token] = process.argv;
const urls = list.split(",");
let calls = process.pid;

async function post(path, body) {
  calls += 1;
  const response = await fetch(`${urls[calls % urls.length]}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: await response.json() };
}

process.on("disconnect", () => process.exit(0));
for (;;) {
  try {
    const wanted = { wait_seconds: 2, lease_seconds: 2, worker_id: `w${process.pid}` };
    const { status, body } = await post(`/v1/agents/${agent}/leases`, wanted);
    if (status !== 200) throw new Error(String(status));
    for (const { lease_id } of body.leases) {
      await post(`/v1/leases/${lease_id}/heartbeat`, { progress: { message: "at it" } });
      await post(`/v1/leases/${lease_id}/reply`, { state: "completed", text: "done" });
    }
  } catch {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
