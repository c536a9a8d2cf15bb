/** Who may do what over MCP: a row for each tool and each method of tasks, in both eras. */
import { MODERN, TASKS_CAPABILITY } from "../../support/mcp.ts";
import { type Ask, COLUMNS, type Column, rowsOf, type Stage, type Subject, type World } from "./world.ts";

export const MCP_ERAS = ["modern", "legacy"] as const;

/** The cells are explained at {@link WORDS}. */
export const MCP = rowsOf(`
                     alice  scout  other  bob    approver viewer operator nobody
delegate_task        ok     loop   ok     ok     403      403    ok       401
delegate_task_async  ok     loop   ok     ok     403      403    ok       401
check_task_status    ok     ok     404    404    ok       ok     ok       401
wait_for_results     sees   blind  blind  blind  blind    blind  blind    401
list_tasks           sees   sees   blind  blind  sees     sees   sees     401
answer_task          ok     403    404    404    ok       403    ok       401
approve_or_deny      ok     403    404    404    ok       403    ok       401
send_follow_up       ok     403    404    404    ok       403    ok       401
cancel_task          ok     403    404    404    ok       403    ok       401
list_schedules       ok     ok     ok     ok     ok       ok     ok       401
manage_schedule      ok     404    404    404    403      403    ok       401
discover_agents      ok     ok     ok     ok     ok       ok     ok       401
broker_health        ok     ok     ok     ok     ok       ok     ok       401
poll_inbox           403    ok     403    403    403      403    ok       401
report_progress      403    ok     404    403    403      403    ok       401
request_input        403    ok     404    403    403      403    ok       401
complete_task        403    ok     404    403    403      403    ok       401
fail_task            403    ok     404    403    403      403    ok       401
release_task         403    ok     404    403    403      403    ok       401
wait_for_parts       403    ok     404    403    403      403    ok       401
tasks/get            ok     ok     404    404    ok       ok     ok       401
tasks/update         ok     403    404    404    ok       403    ok       401
tasks/cancel         ok     403    404    404    ok       403    ok       401
`);

interface Need {
  readonly stage?: Stage;
  readonly args?: (subject: Subject) => Readonly<Record<string, unknown>>;
}

const work = { agent: "scout", task: "do it" };
const ofTask = ({ id }: Subject) => ({ delegation_id: id });
const ofLease = ({ lease }: Subject) => ({ lease_id: lease });
const leased = (more: Readonly<Record<string, unknown>> = {}): Need => ({
  stage: "working",
  args: (subject) => ({ ...ofLease(subject), ...more }),
});
const asked = (more: Readonly<Record<string, unknown>>): Need => ({
  stage: "asking",
  args: (subject) => ({ ...ofTask(subject), interrupt_id: subject.interrupt, ...more }),
});

/** The state of the subject and the arguments that a tool needs. */
const NEEDS: Readonly<Record<string, Need>> = {
  delegate_task: { args: () => ({ ...work, wait_seconds: 0 }) },
  delegate_task_async: { args: () => work },
  check_task_status: { args: ofTask },
  wait_for_results: { stage: "failed", args: () => ({ cursor: "0", wait_seconds: 0, limit: 50 }) },
  answer_task: asked({ text: "yes" }),
  approve_or_deny: asked({ decision: "deny" }),
  send_follow_up: { stage: "working", args: (subject) => ({ ...ofTask(subject), text: "more" }) },
  cancel_task: { stage: "working", args: ofTask },
  manage_schedule: {
    stage: "scheduled",
    args: ({ schedule }) => ({ action: "change", schedule_id: schedule, name: "nightly" }),
  },
  poll_inbox: { args: () => ({ agent: "scout", wait_seconds: 0 }) },
  report_progress: leased(),
  request_input: leased({ question: "may I?" }),
  complete_task: leased({ text: "done" }),
  fail_task: leased({ message: "no" }),
  release_task: leased(),
  wait_for_parts: { stage: "leading", args: ({ lease, child }) => ({ lease_id: lease, ids: [child] }) },
  "tasks/get": { args: ({ id }) => ({ taskId: id }) },
  "tasks/update": {
    stage: "asking",
    args: ({ id, interrupt, request }) => ({
      taskId: id,
      inputResponses: { [`${interrupt}:${request}`]: { action: "decline" } },
    }),
  },
  "tasks/cancel": { stage: "working", args: ({ id }) => ({ taskId: id }) },
};

export const mcpStage = (name: string): Stage => NEEDS[name]?.stage ?? "submitted";

/** A session of 2025-11-25 for each caller that has a token. */
export async function connectMcp({ url, tokens }: World): Promise<ReadonlyMap<Column, string>> {
  const sessions = new Map<Column, string>();
  for (const column of COLUMNS) {
    const response = await fetch(`${url}/mcp`, {
      method: "POST",
      headers: { ...HEADERS, authorization: `Bearer ${tokens[column][0]}` },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: 0,
        method: "initialize",
        params: {
          protocolVersion: "2025-11-25",
          capabilities: {},
          clientInfo: { name: "raw", version: "1" },
        },
      }),
    });
    await response.text();
    sessions.set(column, response.headers.get("mcp-session-id") ?? "none");
  }
  return sessions;
}

const HEADERS = {
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
};

let lastId = 0;

/** The request of a row, by this caller; in a session of the older era if there are some. */
export function mcpAsk(
  name: string,
  subject: Subject,
  column: Column,
  sessions: ReadonlyMap<Column, string> | null,
): Ask {
  const given = NEEDS[name]?.args?.(subject) ?? {};
  const isTool = !name.startsWith("tasks/");
  const method = isTool ? "tools/call" : name;
  const params = isTool ? { name, arguments: given } : given;
  lastId += 1;
  const message = { jsonrpc: "2.0", id: lastId, method };
  if (sessions !== null) {
    const session = sessions.get(column) ?? "none";
    const headers = { ...HEADERS, "mcp-session-id": session, "mcp-protocol-version": "2025-11-25" };
    return { method: "POST", path: "/mcp", body: { ...message, params }, headers };
  }
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": { name: "raw", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": isTool ? {} : TASKS_CAPABILITY,
  };
  return {
    method: "POST",
    path: "/mcp",
    body: { ...message, params: { _meta, ...params } },
    headers: {
      ...HEADERS,
      "mcp-protocol-version": MODERN,
      "mcp-method": method,
      "mcp-name": isTool ? name : subject.id,
    },
  };
}
