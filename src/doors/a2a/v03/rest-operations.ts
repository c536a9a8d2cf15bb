/** The operations of HTTP+JSON 0.3, by the SDK's handler for it. Limit: there is no ListTasks in 0.3. */
import { LegacyRestTransportHandler } from "@a2a-js/sdk/compat/v0_3/server";
import { ServerCallContext } from "@a2a-js/sdk/server";
import { ErrandError } from "../../../schema/errors.ts";
import type { Done } from "../bindings/rest-operations.ts";
import type { Operation } from "../bindings/rest-routes.ts";
import type { Scope } from "../context.ts";
import { BrokerA2AHandler } from "../handler.ts";
import { lastV03 } from "../sdk.ts";
import { checkParamsV03, checkSendV03 } from "./params.ts";
import { cardToWire, configFromWire, configToWire, sendFromWire, streamToWire, taskToWire } from "./wire.ts";

type Legacy = InstanceType<typeof LegacyRestTransportHandler>;
type Send = Parameters<Legacy["sendMessage"]>[0];
type Config = Parameters<Legacy["setTaskPushNotificationConfig"]>[0];

const answered = (body: unknown, status: 200 | 201 = 200): Done => ({ is: "answer", status, body });

export async function operateV03(scope: Scope, { method, params }: Operation, body: unknown): Promise<Done> {
  const legacy = new LegacyRestTransportHandler(new BrokerA2AHandler(scope));
  const context = new ServerCallContext({ requestedVersion: "0.3" });
  const id = String(params.id ?? "");
  const taskId = String(params.taskId ?? "");
  switch (method) {
    case "SendMessage":
      return answered({ task: taskToWire(await legacy.sendMessage(toSend(body), context)) });
    case "SendStreamingMessage":
      return { is: "stream", events: wired(await legacy.sendMessageStream(toSend(body), context)) };
    case "SubscribeToTask":
      return { is: "stream", events: wired(await legacy.resubscribe(id, context)) };
    case "GetTask": {
      checkParamsV03("tasks/get", params);
      return answered(taskToWire(await legacy.getTask(id, context, params.historyLength)));
    }
    case "CancelTask":
      return answered(taskToWire(await legacy.cancelTask(id, context)));
    case "CreateTaskPushNotificationConfig":
      return answered(
        configToWire(await legacy.setTaskPushNotificationConfig(toConfig(body, taskId), context)),
        201,
      );
    case "GetTaskPushNotificationConfig":
      return answered(configToWire(await legacy.getTaskPushNotificationConfig(taskId, id, context)));
    case "ListTaskPushNotificationConfigs": {
      const configs = await legacy.listTaskPushNotificationConfigs(taskId, context);
      return answered({ configs: configs.map(configToWire) });
    }
    case "DeleteTaskPushNotificationConfig":
      await legacy.deleteTaskPushNotificationConfig(taskId, id, context);
      return { is: "answer", status: 204 };
    case "GetExtendedAgentCard":
      return answered(cardToWire(await legacy.getAuthenticatedExtendedAgentCard(context)));
    case "ListTasks":
      throw new ErrandError("not_found", "A2A 0.3 lists no tasks over HTTP+JSON.");
  }
}

const isSend = (params: object): params is Send => "message" in params;
const isConfig = (params: unknown): params is Config =>
  typeof params === "object" && params !== null && "pushNotificationConfig" in params;

function toSend(body: unknown): Send {
  const params = checkSendV03(sendFromWire(body));
  if (isSend(params)) return params;
  throw new ErrandError("invalid_request", "message: is required");
}

function toConfig(body: unknown, taskId: string): Config {
  const params = checkParamsV03("tasks/pushNotificationConfig/set", { ...configFromWire(body), taskId });
  if (isConfig(params)) return params;
  throw new ErrandError("invalid_request", "pushNotificationConfig: is required");
}

async function* wired(events: AsyncGenerator<object>): AsyncGenerator<object> {
  for await (const event of events) yield streamToWire(lastV03(event));
}
