/**
 * Schemas of A2A 0.3 requests, checked before the SDK translates them. Unknown members are ignored. Both bindings read
 * ProtoJSON's spellings, although 0.3 specifies them for HTTP+JSON only.
 */
import * as z from "zod";
import { jsonObjectSchema } from "../../../schema/json-object.ts";
import { LIMITS } from "../../../schema/limits.ts";
import { boundedArray } from "../../../schema/values.ts";
import { check } from "../../http/route.ts";
import { base64Schema } from "../base64.ts";
import { MAX_STRINGS } from "../params.ts";
import { protoInt, protoNames, protoObject } from "../protojson.ts";

type Members = Readonly<Record<string, unknown>>;

const strings = boundedArray(z.string(), 0, MAX_STRINGS);
const object = jsonObjectSchema;
const metadata = { metadata: object.optional() };
const id = z.string().min(1, "is required");
const count = protoInt(0, 2_147_483_647);

const part = z.discriminatedUnion("kind", [
  z.looseObject({ kind: z.literal("text"), text: z.string(), ...metadata }),
  z.looseObject({
    kind: z.literal("file"),
    file: protoNames(
      ["mimeType"],
      z
        .looseObject({
          bytes: base64Schema.optional(),
          uri: z.string().optional(),
          mimeType: z.string().optional(),
          name: z.string().optional(),
        })
        .refine(
          ({ bytes, uri }) => (bytes === undefined) !== (uri === undefined),
          "must have either bytes or a uri",
        ),
    ),
    ...metadata,
  }),
  z.looseObject({ kind: z.literal("data"), data: object, ...metadata }),
]);

const message = protoObject({
  kind: z.literal("message").optional(),
  messageId: z.string().min(1, "is required").max(255),
  role: z.enum(["user", "agent"], { error: "must be user or agent" }),
  parts: boundedArray(part, 1, LIMITS.parts.value),
  contextId: z.string().optional(),
  taskId: z.string().optional(),
  extensions: strings.optional(),
  referenceTaskIds: strings.optional(),
  ...metadata,
});

const pushConfig = z.looseObject({
  id: z.string().optional(),
  url: z.string().min(1, "is required"),
  token: z.string().optional(),
  authentication: z
    .looseObject({
      // Only the first is used; the SDK would log the others.
      schemes: strings.transform((schemes) => schemes.slice(0, 1)),
      credentials: z.string().optional(),
    })
    .optional(),
});

const sendV03 = protoObject({
  message,
  configuration: protoObject({
    acceptedOutputModes: strings.optional(),
    blocking: z.boolean().optional(),
    historyLength: count.optional(),
    pushNotificationConfig: pushConfig.optional(),
  }).optional(),
  ...metadata,
});

const taskShape = { id, ...metadata };
const task = z.looseObject(taskShape);

/** Params schemas by method. */
export const PARAMS_V03 = {
  "message/send": sendV03,
  "message/stream": sendV03,
  "tasks/get": protoObject({ ...taskShape, historyLength: count.optional() }),
  "tasks/cancel": task,
  "tasks/resubscribe": task,
  "tasks/pushNotificationConfig/set": protoObject({ taskId: id, pushNotificationConfig: pushConfig }),
  "tasks/pushNotificationConfig/get": protoObject({
    ...taskShape,
    pushNotificationConfigId: z.string().optional(),
  }),
  "tasks/pushNotificationConfig/list": task,
  "tasks/pushNotificationConfig/delete": protoObject({ ...taskShape, pushNotificationConfigId: id }),
  "agent/getAuthenticatedExtendedCard": z.unknown().optional(),
} as const satisfies Record<string, z.ZodType>;

type MethodV03 = keyof typeof PARAMS_V03;

export const isMethodV03 = (name: string): name is MethodV03 => Object.hasOwn(PARAMS_V03, name);

/** Null counts as absent: some clients send every optional member. */
const withoutNulls = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, member]) => member !== null)
      .map(([name, member]) => [
        name,
        name === "data" || name === "metadata" ? member : withoutNulls(member),
      ]),
  );
};

/** Throws `invalid_request` that lists every problem with its path. */
export const checkParamsV03 = (method: MethodV03, params: unknown): unknown =>
  check<unknown>(PARAMS_V03[method], withoutNulls(params), "params");

export const checkSendV03 = (params: unknown): Members =>
  check<Members>(sendV03, withoutNulls(params), "body");
