/**
 * The operations of HTTP+JSON 1.0, with the SDK's codecs around our handler, because the SDK does not export its handler
 * for this binding. Limit: the caller checks the params before.
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
  Message,
  SendMessageRequest,
  StreamResponse,
  SubscribeToTaskRequest,
  Task,
  TaskPushNotificationConfig,
} from "@a2a-js/sdk";
import * as z from "zod";
import type { A2AContext } from "../context.ts";
import { BrokerA2AHandler } from "../handler.ts";
import type { Method } from "../params.ts";

export type OperationResult =
  | { readonly kind: "response"; readonly status: 200 | 201 | 204; readonly body?: unknown }
  | { readonly kind: "stream"; readonly events: AsyncGenerator<object> };

const toResult = (body: unknown, status: 200 | 201 = 200): OperationResult => ({
  kind: "response",
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
    case "SendMessage": {
      const sent = await handler.sendMessage(SendMessageRequest.fromJSON(params));
      return toResult("messageId" in sent ? { message: Message.toJSON(sent) } : { task: Task.toJSON(sent) });
    }
    case "SendStreamingMessage":
      return toStream(handler.sendMessageStream(SendMessageRequest.fromJSON(params)));
    case "SubscribeToTask":
      return toStream(handler.resubscribe(SubscribeToTaskRequest.fromJSON(params)));
    case "GetTask":
      return toResult(Task.toJSON(await handler.getTask(GetTaskRequest.fromJSON(params))));
    case "ListTasks": {
      const request = ListTasksRequest.fromJSON(params);
      return toResult(
        withRequiredMembers(
          ListTasksResponse.toJSON(await handler.listTasks(request)),
          request.includeArtifacts,
        ),
      );
    }
    case "CancelTask":
      return toResult(Task.toJSON(await handler.cancelTask(CancelTaskRequest.fromJSON(params))));
    case "CreateTaskPushNotificationConfig":
      return toResult(
        TaskPushNotificationConfig.toJSON(
          await handler.createTaskPushNotificationConfig(TaskPushNotificationConfig.fromJSON(params)),
        ),
        201,
      );
    case "GetTaskPushNotificationConfig":
      return toResult(
        TaskPushNotificationConfig.toJSON(
          await handler.getTaskPushNotificationConfig(GetTaskPushNotificationConfigRequest.fromJSON(params)),
        ),
      );
    case "ListTaskPushNotificationConfigs":
      return toResult(
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
      return { kind: "response", status: 204 };
    case "GetExtendedAgentCard":
      return toResult(AgentCard.toJSON(await handler.getAuthenticatedExtendedAgentCard({ tenant: "" })));
  }
}

async function* encodeEvents(events: AsyncGenerator<StreamResponse>): AsyncGenerator<object> {
  for await (const event of events) yield z.looseObject({}).parse(StreamResponse.toJSON(event));
}

const toStream = (events: AsyncGenerator<StreamResponse>): OperationResult => ({
  kind: "stream",
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
