/**
 * Push notification configs as the SDK has them, from and to the engine's. Limit: what A2A leaves empty is absent here;
 * 0.3 has no paging, and may ask for a config without naming it.
 */
import type { TaskPushNotificationConfig } from "@a2a-js/sdk";
import type { ServerCallContext } from "@a2a-js/sdk/server";
import { z } from "zod";
import { type Push, type PushInput, type PushVersion, pushInputSchema } from "../../../schema/push.ts";
import { check } from "../../http/route.ts";

/** Its receiver is told in the words of the version that it was made by. */
export const versionFor = (context: ServerCallContext | undefined): PushVersion =>
  context?.requestedVersion === "0.3" ? "0.3" : "1.0";

const given = ({ id, url, token, authentication }: TaskPushNotificationConfig): Record<string, unknown> => ({
  url,
  ...(id && { id }),
  ...(token && { token }),
  // 0.3 may name no scheme; then there is nothing to be sent.
  ...(authentication?.scheme && {
    authentication: {
      scheme: authentication.scheme,
      ...(authentication.credentials && { credentials: authentication.credentials }),
    },
  }),
});

/** Throws `invalid_request` with every problem and its place. */
export const toPushInput = (config: TaskPushNotificationConfig): PushInput =>
  check(pushInputSchema, given(config), "params");

const inlineSchema = z.object({ configuration: z.object({ taskPushNotificationConfig: pushInputSchema }) });

/** Of a config that comes with a message. */
export function toInlinePush(config: TaskPushNotificationConfig): PushInput {
  const params = { configuration: { taskPushNotificationConfig: given(config) } };
  return check(inlineSchema, params, "params").configuration.taskPushNotificationConfig;
}

export const toPushConfig = (
  taskId: string,
  { id, url, token, authentication }: Push,
): TaskPushNotificationConfig => ({
  tenant: "",
  taskId,
  id,
  url,
  token: token ?? "",
  authentication: authentication && {
    scheme: authentication.scheme,
    credentials: authentication.credentials ?? "",
  },
});
