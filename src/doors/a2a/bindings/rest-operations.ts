/**
 * The operations of HTTP+JSON 1.0: the SDK's codecs around our handler. Limit: params come checked; the SDK's own
 * handler of this binding is not to be had.
 */
import {
  AgentCard,
  CancelTaskRequest,
  DeleteTaskPushNotificationConfigRequest,
  GetTaskPushNotificationConfigRequest,
  GetTaskRequest,
  ListTaskPushNotificationConfigsRequest,
  ListTaskPushNotificationConfigsResponse,
  ListTasksRequest,
  ListTasksResponse,
  SendMessageRequest,
  StreamResponse,
  SubscribeToTaskRequest,
  Task,
  TaskPushNotificationConfig,
} from "@a2a-js/sdk";
import { z } from "zod";
import type { Scope } from "../context.ts";
import { BrokerA2AHandler } from "../handler.ts";
import type { Method } from "../params.ts";

export type Done =
  | { readonly is: "answer"; readonly status: 200 | 201 | 204; readonly body?: unknown }
  | { readonly is: "stream"; readonly events: AsyncGenerator<object> };

const answered = (body: unknown, status: 200 | 201 = 200): Done => ({ is: "answer", status, body });

export async function operate(scope: Scope, method: Method, params: unknown): Promise<Done> {
  const handler = new BrokerA2AHandler(scope);
  switch (method) {
    case "SendMessage":
      return answered({ task: Task.toJSON(await handler.sendMessage(SendMessageRequest.fromJSON(params))) });
    case "SendStreamingMessage":
      return streaming(handler.sendMessageStream(SendMessageRequest.fromJSON(params)));
    case "SubscribeToTask":
      return streaming(handler.resubscribe(SubscribeToTaskRequest.fromJSON(params)));
    case "GetTask":
      return answered(Task.toJSON(await handler.getTask(GetTaskRequest.fromJSON(params))));
    case "ListTasks": {
      const request = ListTasksRequest.fromJSON(params);
      return answered(
        listed(ListTasksResponse.toJSON(await handler.listTasks(request)), request.includeArtifacts),
      );
    }
    case "CancelTask":
      return answered(Task.toJSON(await handler.cancelTask(CancelTaskRequest.fromJSON(params))));
    case "CreateTaskPushNotificationConfig":
      return answered(
        TaskPushNotificationConfig.toJSON(
          await handler.createTaskPushNotificationConfig(TaskPushNotificationConfig.fromJSON(params)),
        ),
        201,
      );
    case "GetTaskPushNotificationConfig":
      return answered(
        TaskPushNotificationConfig.toJSON(
          await handler.getTaskPushNotificationConfig(GetTaskPushNotificationConfigRequest.fromJSON(params)),
        ),
      );
    case "ListTaskPushNotificationConfigs":
      return answered(
        ListTaskPushNotificationConfigsResponse.toJSON(
          await handler.listTaskPushNotificationConfigs(
            ListTaskPushNotificationConfigsRequest.fromJSON(params),
          ),
        ),
      );
    case "DeleteTaskPushNotificationConfig":
      await handler.deleteTaskPushNotificationConfig(
        DeleteTaskPushNotificationConfigRequest.fromJSON(params),
      );
      return { is: "answer", status: 204 };
    case "GetExtendedAgentCard":
      return answered(AgentCard.toJSON(await handler.getAuthenticatedExtendedAgentCard({ tenant: "" })));
  }
}

async function* encoded(events: AsyncGenerator<StreamResponse>): AsyncGenerator<object> {
  for await (const event of events) yield z.looseObject({}).parse(StreamResponse.toJSON(event));
}

const streaming = (events: AsyncGenerator<StreamResponse>): Done => ({
  is: "stream",
  events: encoded(events),
});

const pageSchema = z.looseObject({ tasks: z.array(z.looseObject({})).default([]) });

/** The codec leaves empty members away; these are required, and artifacts where they were asked for. */
function listed(page: unknown, includeArtifacts: boolean | undefined): object {
  const { tasks, ...rest } = pageSchema.parse(page);
  return {
    nextPageToken: "",
    pageSize: 0,
    totalSize: 0,
    ...rest,
    tasks: includeArtifacts ? tasks.map((task) => ({ artifacts: [], ...task })) : tasks,
  };
}
