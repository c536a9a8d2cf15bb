/** Who may do what over HTTP: a row for each route. {@link WORDS} explains the cells. */
import { type Ask, rowsOf, type Stage, type Subject } from "./world.ts";

/** Method and path of each route as it is registered; the cells are explained at {@link WORDS}. */
export const REST = rowsOf(`
                                               alice  scout  other  bob    approver viewer operator nobody
POST /v1/tokens                                403    403    403    403    403      403    ok       401
GET /v1/tokens                                 403    403    403    403    403      403    ok       401
DELETE /v1/tokens/:id                          403    403    403    403    403      403    ok       401
POST /v1/sessions                              ok     ok     ok     ok     ok       ok     ok       401
POST /v1/sessions/codes                        ok     ok     ok     ok     ok       ok     ok       401
GET /v1/sessions                               ok     ok     ok     ok     ok       ok     ok       401
DELETE /v1/sessions/:id                        404    404    404    404    404      404    ok       401
PUT /v1/agents/:agent                          403    ok     403    403    403      403    ok       401
PATCH /v1/agents/:agent                        403    ok     403    403    403      403    ok       401
GET /v1/agents/:agent                          ok     ok     ok     ok     ok       ok     ok       401
GET /v1/agents/:agent/workers                  403    ok     403    403    ok       ok     ok       401
GET /v1/agents/:agent/load                     403    ok     403    403    ok       ok     ok       401
GET /v1/agents                                 ok     ok     ok     ok     ok       ok     ok       401
DELETE /v1/agents/:agent                       403    403    403    403    403      403    ok       401
POST /v1/agents/:agent/pause                   403    403    403    403    403      403    ok       401
POST /v1/agents/:agent/resume                  403    403    403    403    403      403    ok       401
POST /v1/delegations                           ok     loop   ok     ok     403      403    ok       401
POST /v1/delegations/batch                     ok     loop   ok     ok     403      403    ok       401
GET /v1/delegations/:id                        ok     ok     404    404    ok       ok     ok       401
GET /v1/delegations                            sees   sees   blind  blind  sees     sees   sees     401
GET /v1/results                                sees   blind  blind  blind  blind    blind  blind    401
GET /v1/answers                                sees   sees   blind  blind  sees     sees   sees     401
POST /v1/delegations/:id/cancel                ok     403    404    404    ok       403    ok       401
POST /v1/delegations/:id/answer                ok     403    404    404    ok       403    ok       401
POST /v1/delegations/:id/messages              ok     403    404    404    ok       403    ok       401
POST /v1/delegations/:id/redrive               ok     403    404    404    403      403    ok       401
DELETE /v1/delegations/:id                     ok     403    404    404    403      403    ok       401
POST /v1/delegations/redrive                   403    403    403    403    403      403    ok       401
POST /v1/delegations/cancel                    403    403    403    403    403      403    ok       401
GET /v1/events                                 sees   sees   blind  blind  sees     sees   sees     401
GET /v1/delegations/:id/events                 ok     ok     404    404    ok       ok     ok       401
GET /v1/delegations/:id/tree                   ok     ok     404    404    ok       ok     ok       401
GET /v1/delegations/:id/tree/events            ok     ok     404    404    ok       ok     ok       401
POST /v1/files                                 ok     ok     ok     ok     403      403    ok       401
GET /v1/files                                  ok     ok     ok     ok     ok       ok     ok       401
GET /v1/files/:file                            ok     404    404    404    404      404    404      401
DELETE /v1/files/:file                         ok     404    404    404    404      404    404      401
GET /v1/delegations/:id/files/:file            ok     ok     404    404    ok       ok     ok       401
POST /v1/uploads                               ok     ok     ok     ok     403      403    ok       401
GET /v1/uploads/:upload                        ok     404    404    404    404      404    404      401
PATCH /v1/uploads/:upload                      ok     404    404    404    404      404    404      401
DELETE /v1/uploads/:upload                     ok     404    404    404    404      404    404      401
POST /v1/agents/:agent/leases                  403    ok     403    403    403      403    ok       401
POST /v1/leases/:lease_id/heartbeat            403    ok     404    403    403      403    ok       401
POST /v1/leases/:lease_id/artifacts            403    ok     404    403    403      403    ok       401
POST /v1/leases/:lease_id/interrupt            403    ok     404    403    403      403    ok       401
POST /v1/leases/:lease_id/await                403    ok     404    403    403      403    ok       401
POST /v1/leases/:lease_id/use                  403    ok     404    403    403      403    ok       401
POST /v1/leases/:lease_id/release              403    ok     404    403    403      403    ok       401
POST /v1/leases/:lease_id/reply                403    ok     404    403    403      403    ok       401
POST /v1/agents/:agent/replies                 403    ok     403    403    403      403    ok       401
POST /v1/rules                                 ok     ok     ok     ok     ok       403    ok       401
GET /v1/rules                                  ok     ok     ok     ok     ok       ok     ok       401
GET /v1/rules/:rule                            ok     404    404    404    ok       ok     ok       401
DELETE /v1/rules/:rule                         ok     404    404    404    403      403    ok       401
POST /v1/schedules                             ok     loop   ok     ok     403      403    ok       401
GET /v1/schedules                              ok     ok     ok     ok     ok       ok     ok       401
GET /v1/schedules/:schedule                    ok     404    404    404    ok       ok     ok       401
PATCH /v1/schedules/:schedule                  ok     404    404    404    403      403    ok       401
POST /v1/schedules/:schedule/pause             ok     404    404    404    403      403    ok       401
POST /v1/schedules/:schedule/resume            ok     404    404    404    403      403    ok       401
POST /v1/schedules/:schedule/run               ok     404    404    404    403      403    ok       401
GET /v1/schedules/:schedule/runs               ok     404    404    404    ok       ok     ok       401
DELETE /v1/schedules/:schedule                 ok     404    404    404    403      403    ok       401
POST /v1/subscriptions                         ok     ok     ok     ok     ok       ok     ok       401
GET /v1/subscriptions                          ok     ok     ok     ok     ok       ok     ok       401
GET /v1/web-push-key                           ok     ok     ok     ok     ok       ok     ok       401
GET /v1/subscriptions/:subscription            ok     404    404    404    404      404    ok       401
PATCH /v1/subscriptions/:subscription          ok     404    404    404    404      404    403      401
POST /v1/subscriptions/:subscription/resume    ok     404    404    404    404      404    ok       401
POST /v1/subscriptions/:subscription/test      ok     404    404    404    404      404    ok       401
DELETE /v1/subscriptions/:subscription         ok     404    404    404    404      404    ok       401
POST /v1/links/question                        404    404    404    404    404      404    404      404|401
POST /v1/links/answer                          404    404    404    404    404      404    404      404|401
GET /v1/audit                                  403    403    403    403    403      403    ok       401
GET /v1/stats                                  ok     ok     ok     ok     ok       ok     ok       401
GET /v1/stats/agents                           ok     ok     ok     ok     ok       ok     ok       401
GET /v1/status                                 ok     ok     ok     ok     ok       ok     ok       401
POST /ag-ui/:agent                             ok     loop   ok     ok     403      403    ok       401
POST /ag-ui/:agent to attach                   ok     ok     404    404    ok       ok     ok       401
POST /ag-ui/:agent to answer                   ok     403    404    404    ok       403    ok       401
POST /ag-ui/:agent to follow up                ok     403    404    404    ok       403    ok       401
POST /ag-ui/:agent to cancel                   ok     403    404    404    ok       403    ok       401
GET /ag-ui/:agent/capabilities                 ok     ok     ok     ok     ok       ok     ok       401
GET /metrics                                   403    403    403    403    403      ok     ok       401
GET /healthz                                   ok     ok     ok     ok     ok       ok     ok       ok
GET /readyz                                    ok     ok     ok     ok     ok       ok     ok       ok
GET /openapi.json                              ok     ok     ok     ok     ok       ok     ok       ok
GET /docs                                      ok     ok     ok     ok     ok       ok     ok       ok
GET /                                          ok     ok     ok     ok     ok       ok     ok       ok
GET /answer                                    ok     ok     ok     ok     ok       ok     ok       ok
GET /a2a/:agent/.well-known/agent-card.json    ok     ok     ok     ok     ok       ok     ok       ok
GET /a2a/:agent/.well-known/agent.json         ok     ok     ok     ok     ok       ok     ok       ok
GET /a2a/:agent/cards/1.0.json                 ok     ok     ok     ok     ok       ok     ok       ok
GET /a2a/:agent/cards/0.3.json                 ok     ok     ok     ok     ok       ok     ok       ok
`);

interface Need {
  readonly stage?: Stage;
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: (subject: Subject) => unknown;
}

const empty = () => ({});
const deliver = [{ kind: "webhook", url: "https://example.com/hook" }];
const unknownLink = `lnk_${"a".repeat(43)}`;
const work = { target: "scout", task: "do it" };

/** A run that is about the subject; its thread is the subject's context. */
const run = (errand: (subject: Subject) => object, more: (subject: Subject) => object = () => ({})) => ({
  body: (subject: Subject) => ({
    ...{ threadId: subject.context, runId: "r", messages: [], forwardedProps: { errand: errand(subject) } },
    ...more(subject),
  }),
});
const said = () => ({ messages: [{ id: crypto.randomUUID(), role: "user", content: "do it" }] });
const named = ({ id }: Subject) => ({ delegation_id: id });

/** What a route needs in addition to its path: a state of the subject, a body, a query. */
const NEEDS: Readonly<Record<string, Need>> = {
  "POST /v1/tokens": { body: () => ({ principal: "caller:new" }) },
  "DELETE /v1/tokens/:id": { stage: "spare" },
  "DELETE /v1/sessions/:id": { stage: "spare" },
  "PUT /v1/agents/:agent": { body: empty },
  "PATCH /v1/agents/:agent": { body: empty },
  "DELETE /v1/agents/:agent": { stage: "spare" },
  "POST /v1/agents/:agent/pause": { stage: "spare" },
  "POST /v1/agents/:agent/resume": { stage: "spare" },
  "POST /v1/delegations": { body: () => work },
  "POST /v1/delegations/batch": { body: () => ({ delegations: [work] }) },
  "GET /v1/results": { stage: "failed", query: "?after=0&limit=100" },
  "GET /v1/answers": { stage: "answered" },
  "GET /v1/events": { query: "?after=0&limit=1000" },
  "POST /v1/delegations/:id/cancel": { stage: "working" },
  "POST /v1/delegations/:id/answer": {
    stage: "asking",
    body: ({ interrupt }) => ({ interrupt_id: interrupt, text: "yes" }),
  },
  "POST /v1/delegations/:id/messages": { stage: "working", body: () => ({ text: "more" }) },
  "POST /v1/delegations/:id/redrive": { stage: "failed" },
  "DELETE /v1/delegations/:id": { stage: "failed" },
  "POST /v1/delegations/redrive": { stage: "failed", body: () => ({ target: "scout" }) },
  "POST /v1/delegations/cancel": { stage: "spare", body: () => ({ target: "spare" }) },
  "POST /v1/files": { body: () => "content" },
  "GET /v1/files/:file": { stage: "filed" },
  "DELETE /v1/files/:file": { stage: "filed" },
  "GET /v1/delegations/:id/files/:file": { stage: "filed" },
  "POST /v1/uploads": { headers: { "upload-length": "3" } },
  "GET /v1/uploads/:upload": { stage: "filed" },
  "PATCH /v1/uploads/:upload": { stage: "filed", headers: { "upload-offset": "0" }, body: () => 1 },
  "DELETE /v1/uploads/:upload": { stage: "filed" },
  "POST /v1/rules": { body: () => ({ agent: "scout", action: "write", decision: "deny" }) },
  "GET /v1/rules/:rule": { stage: "ruled" },
  "DELETE /v1/rules/:rule": { stage: "ruled" },
  "POST /v1/schedules": { body: () => ({ every_seconds: 3600, paused: true, delegation: work }) },
  "GET /v1/schedules/:schedule": { stage: "scheduled" },
  "PATCH /v1/schedules/:schedule": { stage: "scheduled", body: () => ({ name: "nightly" }) },
  "POST /v1/schedules/:schedule/pause": { stage: "scheduled" },
  "POST /v1/schedules/:schedule/resume": { stage: "scheduled" },
  "POST /v1/schedules/:schedule/run": { stage: "scheduled" },
  "GET /v1/schedules/:schedule/runs": { stage: "scheduled" },
  "DELETE /v1/schedules/:schedule": { stage: "scheduled" },
  "POST /v1/subscriptions": { body: () => ({ events: ["ended"], deliver }) },
  "POST /v1/links/question": { body: () => ({ token: unknownLink }) },
  "POST /v1/links/answer": { body: () => ({ token: unknownLink, decision: "deny" }) },
  "GET /v1/subscriptions/:subscription": { stage: "subscribed" },
  "PATCH /v1/subscriptions/:subscription": { stage: "subscribed", body: () => ({ name: "phone" }) },
  "POST /v1/subscriptions/:subscription/resume": { stage: "subscribed" },
  "POST /v1/subscriptions/:subscription/test": { stage: "subscribed" },
  "DELETE /v1/subscriptions/:subscription": { stage: "subscribed" },
  "POST /v1/agents/:agent/leases": { body: () => ({ wait_seconds: 0 }) },
  "POST /v1/leases/:lease_id/heartbeat": { stage: "working" },
  "POST /v1/leases/:lease_id/artifacts": {
    stage: "working",
    body: () => ({ artifact: { artifactId: "a", parts: [{ text: "x" }] } }),
  },
  "POST /v1/leases/:lease_id/interrupt": {
    stage: "working",
    body: () => ({ kind: "input", text: "may I?" }),
  },
  "POST /v1/leases/:lease_id/await": { stage: "leading", body: ({ child }) => ({ children: [child] }) },
  "POST /v1/leases/:lease_id/use": {
    stage: "answered",
    body: ({ interrupt, request }) => ({ interrupt_id: interrupt, request_id: request, use_key: "k" }),
  },
  "POST /v1/leases/:lease_id/release": { stage: "working" },
  "POST /v1/leases/:lease_id/reply": { stage: "working", body: () => ({ state: "completed", text: "done" }) },
  "POST /ag-ui/:agent": run(() => ({}), said),
  "POST /ag-ui/:agent to attach": run((subject) => ({ attach: true, ...named(subject) })),
  "POST /ag-ui/:agent to answer": {
    stage: "asking",
    ...run(
      (subject) => ({ attach: true, ...named(subject) }),
      ({ interrupt }) => ({
        resume: [{ interruptId: interrupt, status: "resolved", payload: "yes" }],
      }),
    ),
  },
  "POST /ag-ui/:agent to follow up": {
    stage: "working",
    ...run((subject) => ({ follow_up: true, ...named(subject) }), said),
  },
  "POST /ag-ui/:agent to cancel": {
    stage: "working",
    ...run((subject) => ({ cancel: true, ...named(subject) })),
  },
  "POST /v1/agents/:agent/replies": {
    stage: "working",
    body: ({ lease }) => ({
      jsonrpc: "2.0",
      id: lease,
      result: { role: "ROLE_AGENT", messageId: "m", parts: [{ text: "done" }] },
    }),
  },
};

/** The path of a row that tries a route in one of several ways. */
export const routeOf = (row: string): string => row.split(" ").slice(0, 2).join(" ");

export const stageOf = (row: string): Stage => NEEDS[row]?.stage ?? "submitted";

/** The request of a row. */
export function askOf(row: string, subject: Subject): Ask {
  const [method = "", pattern = ""] = row.split(" ");
  const { stage, query, headers, body } = NEEDS[row] ?? {};
  const path = pattern
    .replace("/tokens/:id", `/tokens/${subject.spareToken}`)
    .replace("/sessions/:id", `/sessions/${subject.spareSession}`)
    .replace(":id", subject.id)
    .replace(":file", subject.file)
    .replace(":upload", subject.upload)
    .replace(":rule", subject.rule)
    .replace(":schedule", subject.schedule)
    .replace(":subscription", subject.subscription)
    .replace(":lease_id", subject.lease)
    .replace(":agent", stage === "spare" ? "spare" : "scout");
  return {
    method,
    path: `${path}${query ?? ""}`,
    headers: { accept: "application/json", ...headers },
    ...(body && { body: body(subject) }),
  };
}
