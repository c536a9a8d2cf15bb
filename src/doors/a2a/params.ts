/**
 * Schemas of A2A 1.0 requests, checked before the SDK's codecs decode them. As the protocol specifies, they are ProtoJSON
 * (protojson.ts), unknown members are ignored, and null counts as absent.
 */
import * as z from "zod";
import { A2A_STATES } from "../../schema/a2a-task.ts";
import { jsonObjectSchema } from "../../schema/json-object.ts";
import { LIMITS } from "../../schema/limits.ts";
import { boundedArray } from "../../schema/values.ts";
import { check } from "../http/route.ts";
import { base64Schema } from "./base64.ts";
import { protoEnum, protoInt, protoNames, protoObject } from "./protojson.ts";

/** Far more media types, extensions or tasks than a client names. */
export const MAX_STRINGS = 1_000;

const object = jsonObjectSchema;
const strings = boundedArray(z.string(), 0, MAX_STRINGS);
const count = protoInt(0, 2_147_483_647);
const id = z.string().min(1, "is required");

const CONTENT = ["text", "raw", "url"] as const;
type Members = Readonly<Record<string, unknown>>;

/** Null is a value only for data. */
const contentsOf = (part: Members): number =>
  CONTENT.filter((name) => part[name] !== undefined && part[name] !== null).length +
  (part.data !== undefined && !(part.data === null && CONTENT.some((name) => name in part)) ? 1 : 0);

const partShape = {
  text: z.string().nullish(),
  raw: base64Schema.nullish(),
  url: z.string().nullish(),
  data: z.unknown().optional(),
  mediaType: z.string().nullish(),
  filename: z.string().nullish(),
  metadata: object.nullish(),
};
const part = protoNames(
  Object.keys(partShape),
  z
    .looseObject(partShape)
    .refine((value) => contentsOf(value) === 1, { error: "must have exactly one of text, raw, url, data" }),
);

const message = protoObject({
  messageId: z.string().min(1, "is required").max(255),
  role: protoEnum({ ROLE_USER: 1, ROLE_AGENT: 2 }, "must be ROLE_USER or ROLE_AGENT"),
  parts: boundedArray(part, 1, LIMITS.parts.value),
  contextId: z.string().nullish(),
  taskId: z.string().nullish(),
  metadata: object.nullish(),
  extensions: strings.nullish(),
  referenceTaskIds: strings.nullish(),
});

const tenant = { tenant: z.string().nullish() };

/** A webhook. The engine checks its values. */
const pushConfigShape = {
  ...tenant,
  id: z.string().nullish(),
  taskId: z.string().nullish(),
  url: z.string().min(1, "is required"),
  token: z.string().nullish(),
  authentication: z.looseObject({ scheme: id, credentials: z.string().nullish() }).nullish(),
};

const configuration = protoObject({
  acceptedOutputModes: strings.nullish(),
  historyLength: count.nullish(),
  returnImmediately: z.boolean().nullish(),
  taskPushNotificationConfig: protoObject(pushConfigShape).nullish(),
});

const send = protoObject({
  ...tenant,
  message,
  configuration: configuration.nullish(),
  metadata: object.nullish(),
});

const STATES = Object.fromEntries(Object.entries(A2A_STATES).map(([name, { number }]) => [name, number]));

const task = protoObject({ ...tenant, id });
const ofTask = { ...tenant, taskId: id };

/** Params schemas by method. */
export const PARAMS = {
  SendMessage: send,
  SendStreamingMessage: send,
  GetTask: protoObject({ ...tenant, id, historyLength: count.nullish() }),
  ListTasks: protoObject({
    ...tenant,
    contextId: z.string().nullish(),
    status: protoEnum(STATES, "is not a task state").nullish(),
    pageSize: protoInt(1, 100).nullish(),
    pageToken: z.string().max(512).nullish(),
    historyLength: count.nullish(),
    statusTimestampAfter: z.iso.datetime({ offset: true }).nullish(),
    includeArtifacts: z.boolean().nullish(),
  }),
  CancelTask: protoObject({ ...tenant, id, metadata: object.nullish() }),
  SubscribeToTask: task,
  CreateTaskPushNotificationConfig: protoObject({ ...pushConfigShape, taskId: id }),
  GetTaskPushNotificationConfig: protoObject({ ...ofTask, id }),
  ListTaskPushNotificationConfigs: protoObject({
    ...ofTask,
    pageSize: protoInt(0, 100).nullish(),
    pageToken: z.string().nullish(),
  }),
  DeleteTaskPushNotificationConfig: protoObject({ ...ofTask, id }),
  GetExtendedAgentCard: protoObject(tenant),
} as const satisfies Record<string, z.ZodType>;

export type Method = keyof typeof PARAMS;

export const isMethod = (name: string): name is Method => Object.hasOwn(PARAMS, name);

/** Throws `invalid_request` that lists every problem with its path. */
export const checkParams = (method: Method, params: unknown): Members =>
  check<Members>(PARAMS[method], params, "params");
