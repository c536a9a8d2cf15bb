/**
 * Checks the params of a request before the SDK does: its refusals repeat the words of its schema library. Limit: only the
 * methods that the server has; any other is refused by its name.
 */
import {
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  LOG_LEVEL_META_KEY,
  PROTOCOL_VERSION_META_KEY,
  specTypeSchemas,
} from "@modelcontextprotocol/server";
import * as z from "zod";
import type { ErrandError } from "../../schema/errors.ts";
import { invalidRequest, readAs } from "../../schema/issues.ts";
import { jsonObjectSchema } from "../../schema/json-object.ts";
import { listEventsParams, pollEventsParams } from "./events.ts";

/** A schema of the SDK, which its types show as one of any library. */
function ofSdk(schema: unknown): z.ZodType {
  if (schema instanceof z.ZodType) return schema;
  throw new TypeError("the SDK's schemas are not of zod");
}

const metaSchema = z
  .looseObject({
    progressToken: z.union([z.string(), z.int()]).optional(),
    [PROTOCOL_VERSION_META_KEY]: z.string().optional(),
    [CLIENT_INFO_META_KEY]: ofSdk(specTypeSchemas.Implementation).optional(),
    [CLIENT_CAPABILITIES_META_KEY]: ofSdk(specTypeSchemas.ClientCapabilities).optional(),
    [LOG_LEVEL_META_KEY]: ofSdk(specTypeSchemas.LoggingLevel).optional(),
  })
  .optional();
const anySchema = z.looseObject({ _meta: metaSchema });

export const taskParams = z.looseObject({ taskId: z.string() });

const pageParams = ofSdk(specTypeSchemas.PaginatedRequestParams).optional();
const PARAMS: Readonly<Record<string, z.ZodType>> = {
  initialize: ofSdk(specTypeSchemas.InitializeRequestParams),
  "tools/list": pageParams,
  "resources/list": pageParams,
  "resources/templates/list": pageParams,
  "resources/read": ofSdk(specTypeSchemas.ReadResourceRequestParams),
  "tools/call": z.looseObject({ name: z.string(), arguments: jsonObjectSchema.optional() }),
  "tasks/get": taskParams,
  "tasks/update": taskParams,
  "tasks/cancel": taskParams,
  "events/list": listEventsParams.optional(),
  "events/poll": pollEventsParams,
  "subscriptions/listen": ofSdk(specTypeSchemas.SubscriptionsListenRequestParams),
};

/** Of the messages in a body, the first whose params are wrong. */
export function paramsProblem(body: unknown): ErrandError | undefined {
  for (const message of Array.isArray(body) ? body : [body]) {
    const { method, params } = Object(message);
    if (typeof method !== "string") continue;
    // The SDK knows that a stateless client has no such method, whatever its params are.
    const isUnknown = method === "initialize" && isStateless(params);
    const own = Object.hasOwn(PARAMS, method) && !isUnknown ? PARAMS[method] : undefined;
    for (const schema of [anySchema.optional(), own]) {
      const error = schema && readAs(schema, params).error;
      if (error) return invalidRequest(error, { whole: "The params", under: "params" });
    }
  }
  return undefined;
}

/** Each request of a stateless client says its version of the protocol. */
const isStateless = (params: unknown): boolean =>
  typeof params === "object" &&
  params !== null &&
  "_meta" in params &&
  Object.hasOwn(Object(params._meta), PROTOCOL_VERSION_META_KEY);
