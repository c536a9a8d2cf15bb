/** Who may do what over A2A: a row for each operation, and its request in both versions and bindings. */
import type { Method } from "../../../src/doors/a2a/params.ts";
import { type Ask, NOBODY_LISTENS, rowsOf, type Stage, type Subject } from "./world.ts";

export const A2A_FORMS = ["JSON-RPC 1.0", "HTTP+JSON 1.0", "JSON-RPC 0.3", "HTTP+JSON 0.3"] as const;
export type Form = (typeof A2A_FORMS)[number];

/** The cells are explained at {@link WORDS}. */
export const A2A = rowsOf(`
                                     alice  scout  other  bob    approver viewer operator nobody
SendMessage                          ok     loop   ok     ok     403      403    ok       401
SendStreamingMessage                 ok     loop   ok     ok     403      403    ok       401
GetTask                              ok     ok     404    404    ok       ok     ok       401
ListTasks                            sees   sees   blind  blind  sees     sees   sees     401
CancelTask                           ok     403    404    404    ok       403    ok       401
SubscribeToTask                      ok     ok     404    404    ok       ok     ok       401
CreateTaskPushNotificationConfig     ok     403    404    404    403      403    ok       401
GetTaskPushNotificationConfig        ok     403    404    404    403      403    ok       401
ListTaskPushNotificationConfigs      ok     403    404    404    403      403    ok       401
DeleteTaskPushNotificationConfig     ok     403    404    404    403      403    ok       401
GetExtendedAgentCard                 ok     ok     ok     ok     ok       ok     ok       401
`);

/** Its requests need a push config of alice's. */
const WATCHED = /^(?:Get|List|Delete)TaskPushNotificationConfig/;
export const a2aStage = (name: string): Stage => (WATCHED.test(name) ? "watched" : "submitted");

type Json = Readonly<Record<string, unknown>>;
interface Operation {
  /** Those of 1.0; both HTTP forms use this body. */
  readonly params: Json;
  /** Method and params of JSON-RPC 0.3; null if 0.3 has no such operation. */
  readonly old: readonly [method: string, params?: Json] | null;
  /** Verb and path of HTTP+JSON; those of 0.3 are under `v1/`. */
  readonly http: string;
  readonly body?: Json;
  readonly oldBody?: Json;
}

const OPERATIONS: Readonly<Record<Method, (subject: Subject) => Operation>> = {
  SendMessage: () => sending("message:send", "message/send"),
  SendStreamingMessage: () => sending("message:stream", "message/stream"),
  GetTask: ({ id }) => ({ params: { id }, old: ["tasks/get", { id }], http: `GET tasks/${id}` }),
  ListTasks: () => ({ params: {}, old: null, http: "GET tasks" }),
  CancelTask: ({ id }) => ({
    params: { id },
    old: ["tasks/cancel", { id }],
    http: `POST tasks/${id}:cancel`,
    body: {},
  }),
  SubscribeToTask: ({ id }) => ({
    params: { id },
    old: ["tasks/resubscribe", { id }],
    http: `GET tasks/${id}:subscribe`,
  }),
  CreateTaskPushNotificationConfig: ({ id: taskId }) => {
    const config = { id: "new", url: NOBODY_LISTENS };
    return {
      params: { taskId, ...config },
      old: ["tasks/pushNotificationConfig/set", { taskId, pushNotificationConfig: config }],
      http: `POST tasks/${taskId}/pushNotificationConfigs`,
      body: config,
    };
  },
  GetTaskPushNotificationConfig: ({ id: taskId }) => ofConfig("GET", "get", taskId),
  ListTaskPushNotificationConfigs: ({ id: taskId }) => ({
    params: { taskId },
    old: ["tasks/pushNotificationConfig/list", { id: taskId }],
    http: `GET tasks/${taskId}/pushNotificationConfigs`,
  }),
  DeleteTaskPushNotificationConfig: ({ id: taskId }) => ofConfig("DELETE", "delete", taskId),
  GetExtendedAgentCard: () => ({
    params: {},
    old: ["agent/getAuthenticatedExtendedCard"],
    http: "GET extendedAgentCard",
  }),
};

function sending(path: string, old: string): Operation {
  const message = (role: string, part: Json) => ({ messageId: "m", role, parts: [part] });
  const params = {
    message: message("ROLE_USER", { text: "do it" }),
    configuration: { returnImmediately: true },
  };
  const before = {
    message: message("user", { kind: "text", text: "do it" }),
    configuration: { blocking: false },
  };
  return { params, old: [old, before], http: `POST ${path}`, body: params, oldBody: before };
}

const ofConfig = (verb: string, old: string, taskId: string): Operation => ({
  params: { taskId, id: "mine" },
  old: [`tasks/pushNotificationConfig/${old}`, { id: taskId, pushNotificationConfigId: "mine" }],
  http: `${verb} tasks/${taskId}/pushNotificationConfigs/mine`,
});

export const isOperation = (name: string): name is Method => Object.hasOwn(OPERATIONS, name);

/** The requests of an operation; null if the form does not have it. */
export function a2aAsk(form: Form, name: string): ((subject: Subject) => Ask) | null {
  if (!isOperation(name)) throw new TypeError(`no operation ${name}`);
  const isOld = form.endsWith("0.3");
  if (isOld && name === "ListTasks") return null;
  return (subject) => requestOf(form, name, OPERATIONS[name](subject));
}

function requestOf(form: Form, name: string, { params, old, http, body, oldBody = body }: Operation): Ask {
  const isOld = form.endsWith("0.3");
  const headers = { "a2a-version": isOld ? "0.3" : "1.0" };
  if (form.startsWith("JSON-RPC")) {
    const [method, given] = isOld && old !== null ? old : [name, params];
    const envelope = { jsonrpc: "2.0", id: 1, method, ...(given && { params: given }) };
    return { method: "POST", path: "/a2a/scout/rpc", body: envelope, headers };
  }
  const [verb = "", path = ""] = http.split(" ");
  const sent = isOld ? oldBody : body;
  const oldPath = path === "extendedAgentCard" ? "v1/card" : `v1/${path}`;
  const full = `/a2a/scout/rest/${isOld ? oldPath : path}`;
  return { method: verb, path: full, headers, ...(sent && { body: sent }) };
}
