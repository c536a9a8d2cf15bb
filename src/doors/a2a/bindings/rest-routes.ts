/**
 * Maps a path of the HTTP+JSON binding to its operation, with the params from path and query. The paths of 0.3 are the
 * same after `v1/`, except for the card.
 */
import type { MountedRequest } from "../../http/mount.ts";
import type { Method } from "../params.ts";
import { toSnake } from "../protojson.ts";

export interface Operation {
  readonly method: Method;
  /** Params from the path and the query. */
  readonly params: Readonly<Record<string, unknown>>;
}

const CONFIGS = "pushNotificationConfigs";

/** Null when no operation matches. */
export function findOperation(
  verb: string,
  path: string,
  query: MountedRequest["query"],
  version: "1.0" | "0.3",
): Operation | null {
  const segments = path.replace(/\/$/, "").split("/").map(decodeSegment);
  if (version === "0.3" && segments.shift() !== "v1") return null;
  const [first = "", second = "", third, fourth, ...more] = segments;
  if (more.length > 0 || segments.includes(null)) return null;
  const at = (found: string, method: Method, params = {}): Operation | null =>
    found.split(" ").includes(verb) ? { method, params } : null;

  if (segments.length === 1) {
    if (first === "message:send") return at("POST", "SendMessage");
    if (first === "message:stream") return at("POST", "SendStreamingMessage");
    if (first === (version === "0.3" ? "card" : "extendedAgentCard"))
      return at("GET", "GetExtendedAgentCard");
    if (first === "tasks" && version === "1.0") return at("GET", "ListTasks", listParams(query));
    return null;
  }
  if (first !== "tasks" || second === null) return null;
  if (segments.length === 2) return findTaskOperation(verb, second, query);
  if (third !== CONFIGS) return null;
  const taskId = second;
  if (fourth === undefined) {
    return verb === "POST"
      ? { method: "CreateTaskPushNotificationConfig", params: { taskId } }
      : at("GET", "ListTaskPushNotificationConfigs", {
          taskId,
          ...pick(query, { pageSize: text, pageToken: text }),
        });
  }
  return (
    at("GET", "GetTaskPushNotificationConfig", { taskId, id: fourth }) ??
    at("DELETE", "DeleteTaskPushNotificationConfig", { taskId, id: fourth })
  );
}

export const REST_METHODS = ["GET", "POST", "DELETE"];

/** The methods of a path below `rest/`: of one version, or of both. */
export const methodsAt = (path: string, versions: readonly ("1.0" | "0.3")[] = ["1.0", "0.3"]): string[] =>
  REST_METHODS.filter((verb) => versions.some((version) => findOperation(verb, path, {}, version) !== null));

/** `tasks/{id}` and `tasks/{id}:{verb}`. */
function findTaskOperation(verb: string, segment: string, query: MountedRequest["query"]): Operation | null {
  const colon = segment.lastIndexOf(":");
  if (colon === -1) {
    const options = pick(query, { historyLength: text });
    return verb === "GET" ? { method: "GetTask", params: { ...options, id: segment } } : null;
  }
  const id = segment.slice(0, colon);
  switch (segment.slice(colon + 1)) {
    case "cancel":
      return verb === "POST" ? { method: "CancelTask", params: { id } } : null;
    case "subscribe":
      // The specification's text and its protobuf disagree on the method.
      return verb === "GET" || verb === "POST" ? { method: "SubscribeToTask", params: { id } } : null;
    default:
      return null;
  }
}

const listParams = (query: MountedRequest["query"]) =>
  pick(query, {
    contextId: text,
    status: enumeration,
    pageSize: text,
    pageToken: text,
    historyLength: text,
    statusTimestampAfter: text,
    includeArtifacts: flag,
  });

/** An invalid value stays unchanged, and fails the schema. Numbers stay texts, which ProtoJSON allows. */
const text = (value: string): unknown => value;
const enumeration = (value: string): unknown => (/^\d{1,9}$/.test(value) ? Number(value) : value);
const flag = (value: string): unknown => (value === "true" ? true : value === "false" ? false : value);

/** Takes both spellings of a name; the schema joins them. */
function pick(query: MountedRequest["query"], readers: Record<string, (value: string) => unknown>) {
  const found: Record<string, unknown> = {};
  for (const [camel, reader] of Object.entries(readers)) {
    for (const name of [camel, toSnake(camel)]) {
      const value = query[name]?.[0];
      if (value !== undefined && value !== "") found[name] = reader(value);
    }
  }
  return found;
}

function decodeSegment(segment: string): string | null {
  try {
    return decodeURIComponent(segment);
  } catch {
    return null;
  }
}
