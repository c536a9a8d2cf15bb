/**
 * Schemas of A2A 1.0 requests, checked before the SDK's codecs decode them. As the protocol specifies, unknown members
 * are ignored, and null counts as absent.
 */
import { z } from "zod";
import { LIMITS } from "../../schema/limits.ts";
import { boundedArray } from "../../schema/values.ts";
import { check } from "../http/route.ts";
import { base64Schema } from "./base64.ts";

const object = z.record(z.string(), z.unknown());
const strings = z.array(z.string());
const count = z.int().min(0).max(2_147_483_647);
const id = z.string().min(1, "is required");

const CONTENT = ["text", "raw", "url"] as const;
type Members = Readonly<Record<string, unknown>>;

/** Null is a value only for data. */
const contentsOf = (part: Members): number =>
  CONTENT.filter((name) => part[name] !== undefined && part[name] !== null).length +
  (part.data !== undefined && !(part.data === null && CONTENT.some((name) => name in part)) ? 1 : 0);

const part = z
  .looseObject({
    text: z.string().nullish(),
    raw: base64Schema.nullish(),
    url: z.string().nullish(),
    data: z.unknown().optional(),
    mediaType: z.string().nullish(),
    filename: z.string().nullish(),
    metadata: object.nullish(),
  })
  .refine((value) => contentsOf(value) === 1, { error: "must have exactly one of text, raw, url, data" });

const message = z.looseObject({
  messageId: z.string().min(1, "is required").max(255),
  role: z.enum(["ROLE_USER", "ROLE_AGENT"], { error: "must be ROLE_USER or ROLE_AGENT" }),
  parts: boundedArray(part, 1, LIMITS.parts.value),
  contextId: z.string().nullish(),
  taskId: z.string().nullish(),
  metadata: object.nullish(),
  extensions: strings.nullish(),
  referenceTaskIds: strings.nullish(),
});

const tenant = { tenant: z.string().nullish() };

/** A webhook. The engine checks its values. */
const pushConfig = z.looseObject({
  ...tenant,
  id: z.string().nullish(),
  taskId: z.string().nullish(),
  url: z.string().min(1, "is required"),
  token: z.string().nullish(),
  authentication: z.looseObject({ scheme: id, credentials: z.string().nullish() }).nullish(),
});

const configuration = z.looseObject({
  acceptedOutputModes: strings.nullish(),
  historyLength: count.nullish(),
  returnImmediately: z.boolean().nullish(),
  taskPushNotificationConfig: pushConfig.nullish(),
});

const send = z.looseObject({
  ...tenant,
  message,
  configuration: configuration.nullish(),
  metadata: object.nullish(),
});

const STATES = [
  "TASK_STATE_UNSPECIFIED",
  "TASK_STATE_SUBMITTED",
  "TASK_STATE_WORKING",
  "TASK_STATE_COMPLETED",
  "TASK_STATE_FAILED",
  "TASK_STATE_CANCELED",
  "TASK_STATE_INPUT_REQUIRED",
  "TASK_STATE_REJECTED",
  "TASK_STATE_AUTH_REQUIRED",
] as const;

const task = z.looseObject({ ...tenant, id });
const ofTask = z.looseObject({ ...tenant, taskId: id });

/** Params schemas by method. */
export const PARAMS = {
  SendMessage: send,
  SendStreamingMessage: send,
  GetTask: z.looseObject({ ...tenant, id, historyLength: count.nullish() }),
  ListTasks: z.looseObject({
    ...tenant,
    contextId: z.string().nullish(),
    status: z.enum(STATES, { error: "is not a task state" }).nullish(),
    pageSize: z.int().min(1).max(100).nullish(),
    pageToken: z.string().max(512).nullish(),
    historyLength: count.nullish(),
    statusTimestampAfter: z.iso.datetime({ offset: true }).nullish(),
    includeArtifacts: z.boolean().nullish(),
  }),
  CancelTask: z.looseObject({ ...tenant, id, metadata: object.nullish() }),
  SubscribeToTask: task,
  CreateTaskPushNotificationConfig: pushConfig.extend({ taskId: id }),
  GetTaskPushNotificationConfig: ofTask.extend({ id }),
  ListTaskPushNotificationConfigs: ofTask.extend({
    pageSize: z.int().min(0).max(100).nullish(),
    pageToken: z.string().nullish(),
  }),
  DeleteTaskPushNotificationConfig: ofTask.extend({ id }),
  GetExtendedAgentCard: z.looseObject(tenant),
} as const satisfies Record<string, z.ZodType>;

export type Method = keyof typeof PARAMS;

export const isMethod = (name: string): name is Method => Object.hasOwn(PARAMS, name);

/** Throws `invalid_request` that lists every problem with its path. */
export const checkParams = (method: Method, params: unknown): Members =>
  check<Members>(PARAMS[method], params, "params");
