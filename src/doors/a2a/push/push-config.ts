/** Push notification configs: from the SDK's form to the engine's, and back. The SDK's empty strings become absent. */
import type { TaskPushNotificationConfig } from "@a2a-js/sdk";
import type { ServerCallContext } from "@a2a-js/sdk/server";
import * as z from "zod";
import {
  type PushConfig,
  type PushConfigInput,
  type PushVersion,
  pushConfigInputSchema,
} from "../../../schema/push-config.ts";
import { check } from "../../http/route.ts";

/** Notifications have the form of the version that created the config. */
export const pushVersionOf = (context: ServerCallContext | undefined): PushVersion =>
  context?.requestedVersion === "0.3" ? "0.3" : "1.0";

const pushMembers = ({
  id,
  url,
  token,
  authentication,
}: TaskPushNotificationConfig): Record<string, unknown> => ({
  url,
  ...(id && { id }),
  ...(token && { token }),
  // 0.3 may name no scheme; then no credentials are sent.
  ...(authentication?.scheme && {
    authentication: {
      scheme: authentication.scheme,
      ...(authentication.credentials && { credentials: authentication.credentials }),
    },
  }),
});

/** Throws `invalid_request` that lists every problem with its path. */
export const toPushConfigInput = (config: TaskPushNotificationConfig): PushConfigInput =>
  check(pushConfigInputSchema, pushMembers(config), "params");

const inlineSchema = z.object({
  configuration: z.object({ taskPushNotificationConfig: pushConfigInputSchema }),
});

/** For a config inside a SendMessage request. */
export function toInlinePushConfig(config: TaskPushNotificationConfig): PushConfigInput {
  const params = { configuration: { taskPushNotificationConfig: pushMembers(config) } };
  return check(inlineSchema, params, "params").configuration.taskPushNotificationConfig;
}

export const toSdkPushConfig = (
  taskId: string,
  { id, url, token, authentication }: PushConfig,
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
