// One role of a story in its own process, over plain HTTP; sends what it sees to its parent, line by line.
// approval.test.ts starts it. Arguments: role, url, token, and the role's own.
const [, , role, url, token, about] = process.argv;
const authorization = `Bearer ${token}`;
const tell = (what) => new Promise((resolve) => process.send(what, resolve));

async function call(method, path, body) {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: { authorization, "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(JSON.stringify(answer));
  return answer;
}

/** The events of a stream as they arrive, until it ends. */
async function* stream(path) {
  const response = await fetch(`${url}${path}`, { headers: { authorization, accept: "text/event-stream" } });
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of response.body) {
    text += decoder.decode(chunk, { stream: true });
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const data = /^data: ?(.*)$/m.exec(text.slice(0, end));
      if (data) yield JSON.parse(data[1]);
      text = text.slice(end + 2);
    }
  }
}

const ROLES = {
  /** Delegates, watches until a question is asked, and exits. */
  async delegator() {
    const { id } = await call("POST", "/v1/delegations", { target: "scout", task: "Deploy it" });
    await tell({ id });
    for await (const event of stream(`/v1/delegations/${id}/events`)) {
      // The first snapshot may already contain it.
      const state = event.delegation?.state ?? event.state;
      if (state === "input_required") return tell({ left_at: state });
    }
  },
  /** Leases the work; asks if it has no answer yet and then hangs, else acts on the answer. */
  async agent() {
    const { leases } = await call("POST", "/v1/agents/scout/leases", { wait_seconds: 30, worker_id: about });
    const [{ lease_id, attempt, request }] = leases;
    const { decision } = request.params.message.metadata;
    if (decision !== undefined) {
      const { outcome } = await call("POST", `/v1/leases/${lease_id}/reply`, {
        state: "completed",
        text: `deployed: ${decision}`,
      });
      return tell({ outcome, attempt });
    }
    const question = { kind: "input", text: "May I deploy?", options: ["approve", "deny"] };
    const { interrupt_id } = await call("POST", `/v1/leases/${lease_id}/interrupt`, question);
    await tell({ interrupt_id });
    setInterval(() => {}, 1000);
    return new Promise(() => {});
  },
  /** Finds the one open question and approves it. */
  async approver() {
    const { delegations } = await call("GET", "/v1/delegations?target=scout&state=input_required");
    const [{ id, interrupt }] = delegations;
    const { state } = await call("POST", `/v1/delegations/${id}/answer`, {
      interrupt_id: interrupt.id,
      decision: "approve",
    });
    return tell({ answered: interrupt.id, state });
  },
  /** Prints every event until it is stopped. */
  async watcher() {
    const events = stream("/v1/events?after=0");
    await tell({ watching: true });
    for await (const { type, status, state } of events) await tell({ type, status, state });
  },
  /** Returns later for the result of the delegation. */
  async reader() {
    const { results } = await call("GET", "/v1/results?wait_seconds=30");
    return tell({
      results: results.map(({ id, state, reply }) => ({ id, state, text: reply.parts[0].text })),
    });
  },
};

process.on("disconnect", () => process.exit(0));
await ROLES[role]();
process.exit(0);
