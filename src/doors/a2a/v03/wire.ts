/**
 * Converts between the two JSON forms of A2A 0.3: HTTP+JSON uses the protobuf's objects; JSON-RPC and the SDK's handler
 * use those of the JSON Schema. A request may have either form, because some clients send the latter.
 */
import * as z from "zod";
import { LIMITS } from "../../../schema/limits.ts";
import { boundedArray } from "../../../schema/values.ts";
import { check } from "../../http/route.ts";
import { protoObject } from "../protojson.ts";

type Members = Readonly<Record<string, unknown>>;

/** Fields that a request of HTTP+JSON may spell in snake_case; params.ts checks the values. */
const any = z.unknown().optional();
const wireFile = protoObject({ fileWithBytes: any, fileWithUri: any, mimeType: any });
const wirePart = z.looseObject({ file: wireFile.nullish() });
const wireParts = boundedArray(wirePart, 0, LIMITS.parts.value).nullish();
const wireMessage = protoObject({
  messageId: any,
  contextId: any,
  taskId: any,
  referenceTaskIds: any,
  content: wireParts,
  parts: wireParts,
});
const wireSend = protoObject({
  message: wireMessage.nullish(),
  request: wireMessage.nullish(),
  configuration: protoObject({
    acceptedOutputModes: any,
    pushNotification: any,
    pushNotificationConfig: any,
    historyLength: any,
  }).nullish(),
});
/** A config alone, with its task's name around it, or with the members of a request around both. */
const wireConfig = protoObject({ pushNotificationConfig: any, config: any, configId: any });

const isObject = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const membersOf = (value: unknown): Members => (isObject(value) ? value : {});
const present = (members: Members): Members =>
  Object.fromEntries(Object.entries(members).filter(([, member]) => member !== undefined && member !== ""));

/** A state in the spelling of the 0.3 protobuf. */
const toState = (state: unknown): string =>
  state === "canceled"
    ? "TASK_STATE_CANCELLED"
    : state === "unknown"
      ? "TASK_STATE_UNSPECIFIED"
      : `TASK_STATE_${String(state).toUpperCase().replaceAll("-", "_")}`;

function partToWire(part: unknown): Members {
  const { kind, text, file, data, metadata } = membersOf(part);
  if (kind === "text") return { ...present({ metadata }), text };
  if (kind === "data") return present({ data: { data }, metadata });
  const { bytes, uri, mimeType, name } = membersOf(file);
  return present({ file: present({ fileWithBytes: bytes, fileWithUri: uri, mimeType, name }), metadata });
}

function messageToWire(message: unknown): Members {
  const { kind: _kind, role, parts, ...rest } = membersOf(message);
  const named = role === "user" ? "ROLE_USER" : "ROLE_AGENT";
  return { ...rest, role: named, content: listOf(parts).map(partToWire) };
}

function statusToWire(status: unknown): Members {
  const { state, message, timestamp } = membersOf(status);
  return present({ state: toState(state), message: message && messageToWire(message), timestamp });
}

function artifactToWire(artifact: unknown): Members {
  const { parts, ...rest } = membersOf(artifact);
  return { ...rest, parts: listOf(parts).map(partToWire) };
}

export function taskToWire(task: unknown): Members {
  const { kind: _kind, status, artifacts, history, ...rest } = membersOf(task);
  return present({
    ...rest,
    status: statusToWire(status),
    artifacts: artifacts && listOf(artifacts).map(artifactToWire),
    history: history && listOf(history).map(messageToWire),
  });
}

export function streamToWire(event: object): Members {
  const { kind, ...rest } = membersOf(event);
  switch (kind) {
    case "status-update":
      return { statusUpdate: { ...rest, status: statusToWire(rest.status) } };
    case "artifact-update":
      return { artifactUpdate: { ...rest, artifact: artifactToWire(rest.artifact) } };
    case "message":
      return { message: messageToWire(event) };
    default:
      return { task: taskToWire(event) };
  }
}

export function cardToWire(card: unknown): Members {
  const { securitySchemes, security, ...rest } = membersOf(card);
  const schemes = Object.entries(membersOf(securitySchemes)).map(([name, scheme]) => {
    const { type: _http, ...http } = membersOf(scheme);
    return [name, { httpAuthSecurityScheme: http }];
  });
  const required = listOf(security).map((one) => ({
    schemes: Object.fromEntries(Object.entries(membersOf(one)).map(([name, list]) => [name, { list }])),
  }));
  return { ...rest, securitySchemes: Object.fromEntries(schemes), security: required };
}

export function configToWire(config: unknown): Members {
  const { taskId, pushNotificationConfig } = membersOf(config);
  const { id } = membersOf(pushNotificationConfig);
  return { name: `tasks/${taskId}/pushNotificationConfigs/${id ?? ""}`, pushNotificationConfig };
}

export function configFromWire(body: unknown): Members {
  const { config, configId, ...outer } = check<Members>(wireConfig, membersOf(body), "body");
  if (!isObject(config)) return { pushNotificationConfig: innerConfig(outer) };
  const inner = innerConfig(check<Members>(wireConfig, config, "config"));
  return { pushNotificationConfig: { ...present({ id: configId }), ...present(inner) } };
}

const innerConfig = ({ pushNotificationConfig, ...rest }: Members): Members =>
  isObject(pushNotificationConfig) ? pushNotificationConfig : rest;

/** A part that is not in the protobuf's form stays unchanged. */
function partFromWire(part: unknown): unknown {
  if (!isObject(part) || "kind" in part) return part;
  const { text, file, data, metadata } = part;
  if (text !== undefined) return { ...present({ kind: "text", metadata }), text };
  if (isObject(data)) return { kind: "data", data: data.data, ...(metadata !== undefined && { metadata }) };
  if (!isObject(file)) return part;
  const { fileWithBytes: bytes, fileWithUri: uri, mimeType, name } = file;
  return present({ kind: "file", file: present({ bytes, uri, mimeType, name }), metadata });
}

const ROLES = new Map<unknown, string>([
  ["ROLE_USER", "user"],
  [1, "user"],
  ["ROLE_AGENT", "agent"],
  [2, "agent"],
]);

export function sendFromWire(body: unknown): unknown {
  if (!isObject(body)) return body;
  const { message, request = message, configuration, ...rest } = check<Members>(wireSend, body, "body");
  if (!isObject(request)) return body;
  const { content, parts = content, role, taskId, contextId, ...members } = request;
  const { pushNotification, ...options } = membersOf(configuration);
  return {
    ...rest,
    ...(configuration !== undefined && {
      configuration: present({
        pushNotificationConfig: pushNotification,
        ...options,
      }),
    }),
    message: {
      ...members,
      // An empty id counts as absent.
      ...present({ taskId, contextId }),
      role: ROLES.get(role) ?? role,
      parts: Array.isArray(parts) ? parts.map(partFromWire) : parts,
    },
  };
}
