/**
 * The operations of HTTP+JSON 1.0: the SDK's codecs around our handler, because the SDK does not export its own handler
 * for this binding. Params are checked before.
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
import type { A2AContext } from "../context.ts";
import { BrokerA2AHandler } from "../handler.ts";
import type { Method } from "../params.ts";

export type OperationResult =
  | { readonly is: "answer"; readonly status: 200 | 201 | 204; readonly body?: unknown }
  | { readonly is: "stream"; readonly events: AsyncGenerator<object> };

const toAnswer = (body: unknown, status: 200 | 201 = 200): OperationResult => ({
  is: "answer",
  status,
  body,
});

export async function runOperation(
  context: A2AContext,
  method: Method,
  params: unknown,
): Promise<OperationResult> {
  const handler = new BrokerA2AHandler(context);
  switch (method) {
    case "SendMessage":
      return toAnswer({ task: Task.toJSON(await handler.sendMessage(SendMessageRequest.fromJSON(params))) });
    case "SendStreamingMessage":
      return toStream(handler.sendMessageStream(SendMessageRequest.fromJSON(params)));
    case "SubscribeToTask":
      return toStream(handler.resubscribe(SubscribeToTaskRequest.fromJSON(params)));
    case "GetTask":
      return toAnswer(Task.toJSON(await handler.getTask(GetTaskRequest.fromJSON(params))));
    case "ListTasks": {
      const request = ListTasksRequest.fromJSON(params);
      return toAnswer(
        withRequiredMembers(
          ListTasksResponse.toJSON(await handler.listTasks(request)),
          request.includeArtifacts,
        ),
      );
    }
    case "CancelTask":
      return toAnswer(Task.toJSON(await handler.cancelTask(CancelTaskRequest.fromJSON(params))));
    case "CreateTaskPushNotificationConfig":
      return toAnswer(
        TaskPushNotificationConfig.toJSON(
          await handler.createTaskPushNotificationConfig(TaskPushNotificationConfig.fromJSON(params)),
        ),
        201,
      );
    case "GetTaskPushNotificationConfig":
      return toAnswer(
        TaskPushNotificationConfig.toJSON(
          await handler.getTaskPushNotificationConfig(GetTaskPushNotificationConfigRequest.fromJSON(params)),
        ),
      );
    case "ListTaskPushNotificationConfigs":
      return toAnswer(
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
      return toAnswer(AgentCard.toJSON(await handler.getAuthenticatedExtendedAgentCard({ tenant: "" })));
  }
}

async function* encodeEvents(events: AsyncGenerator<StreamResponse>): AsyncGenerator<object> {
  for await (const event of events) yield z.looseObject({}).parse(StreamResponse.toJSON(event));
}

const toStream = (events: AsyncGenerator<StreamResponse>): OperationResult => ({
  is: "stream",
  events: encodeEvents(events),
});

const pageSchema = z.looseObject({ tasks: z.array(z.looseObject({})).default([]) });

/** Adds required members that the codec omits when they are empty, and artifacts if they were requested. */
function withRequiredMembers(page: unknown, includeArtifacts: boolean | undefined): object {
  const { tasks, ...rest } = pageSchema.parse(page);
  return {
    nextPageToken: "",
    pageSize: 0,
    totalSize: 0,
    ...rest,
    tasks: includeArtifacts ? tasks.map((task) => ({ artifacts: [], ...task })) : tasks,
  };
}
