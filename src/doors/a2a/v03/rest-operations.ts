/** The operations of HTTP+JSON 0.3, over the SDK's handler. Limit: 0.3 has no ListTasks. */
import { LegacyRestTransportHandler } from "@a2a-js/sdk/compat/v0_3/server";
import { ServerCallContext } from "@a2a-js/sdk/server";
import * as z from "zod";
import { ErrandError } from "../../../schema/errors.ts";
import { MISSING } from "../../../schema/wording.ts";
import type { OperationResult } from "../bindings/rest-operations.ts";
import type { Operation } from "../bindings/rest-routes.ts";
import type { A2AContext } from "../context.ts";
import { BrokerA2AHandler } from "../handler.ts";
import { markFinalV03 } from "../sdk.ts";
import { checkParamsV03, checkSendV03 } from "./params.ts";
import { cardToWire, configFromWire, configToWire, sendFromWire, streamToWire, taskToWire } from "./wire.ts";

const historySchema = z.object({ historyLength: z.int().optional() });

type Legacy = InstanceType<typeof LegacyRestTransportHandler>;
type Send = Parameters<Legacy["sendMessage"]>[0];
type Config = Parameters<Legacy["setTaskPushNotificationConfig"]>[0];

const toResult = (body: unknown, status: 200 | 201 = 200): OperationResult => ({
  kind: "response",
  status,
  body,
});

export async function runOperationV03(
  context: A2AContext,
  { method, params }: Operation,
  body: unknown,
): Promise<OperationResult> {
  const legacy = new LegacyRestTransportHandler(new BrokerA2AHandler(context));
  const callContext = new ServerCallContext({ requestedVersion: "0.3" });
  const id = String(params.id ?? "");
  const taskId = String(params.taskId ?? "");
  switch (method) {
    case "SendMessage":
      return toResult(streamToWire(await legacy.sendMessage(toSend(body), callContext)));
    case "SendStreamingMessage":
      return {
        kind: "stream",
        events: encodeEvents(await legacy.sendMessageStream(toSend(body), callContext)),
      };
    case "SubscribeToTask":
      return { kind: "stream", events: encodeEvents(await legacy.resubscribe(id, callContext)) };
    case "GetTask": {
      const { historyLength } = historySchema.parse(checkParamsV03("tasks/get", params));
      return toResult(taskToWire(await legacy.getTask(id, callContext, historyLength)));
    }
    case "CancelTask":
      return toResult(taskToWire(await legacy.cancelTask(id, callContext)));
    case "CreateTaskPushNotificationConfig":
      return toResult(
        configToWire(await legacy.setTaskPushNotificationConfig(toConfig(body, taskId), callContext)),
        201,
      );
    case "GetTaskPushNotificationConfig":
      return toResult(configToWire(await legacy.getTaskPushNotificationConfig(taskId, id, callContext)));
    case "ListTaskPushNotificationConfigs": {
      const configs = await legacy.listTaskPushNotificationConfigs(taskId, callContext);
      return toResult({ configs: configs.map(configToWire) });
    }
    case "DeleteTaskPushNotificationConfig":
      await legacy.deleteTaskPushNotificationConfig(taskId, id, callContext);
      return { kind: "response", status: 204 };
    case "GetExtendedAgentCard":
      return toResult(cardToWire(await legacy.getAuthenticatedExtendedAgentCard(callContext)));
    case "ListTasks":
      throw new ErrandError("not_found", "A2A 0.3 has no task list over HTTP+JSON.");
  }
}

const isSend = (params: object): params is Send => "message" in params;
const isConfig = (params: unknown): params is Config =>
  typeof params === "object" && params !== null && "pushNotificationConfig" in params;

function toSend(body: unknown): Send {
  const params = checkSendV03(sendFromWire(body));
  if (isSend(params)) return params;
  throw missing("message");
}

function toConfig(body: unknown, taskId: string): Config {
  const params = checkParamsV03("tasks/pushNotificationConfig/set", { ...configFromWire(body), taskId });
  if (isConfig(params)) return params;
  throw missing("pushNotificationConfig");
}

const missing = (path: string): ErrandError =>
  new ErrandError("invalid_request", `${path}: ${MISSING}`, {
    details: { issues: [{ path, reason: MISSING }] },
  });

async function* encodeEvents(events: AsyncGenerator<object>): AsyncGenerator<object> {
  for await (const event of events) yield streamToWire(markFinalV03(event));
}
