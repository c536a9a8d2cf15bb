/**
 * The A2A operations over the engine's verbs. One instance for each request, without state of its own, so that every
 * gateway serves every task, also after a restart. A client that disconnects ends its stream or its wait, never the task.
 */
import type {
  AgentCard,
  CancelTaskRequest,
  DeleteTaskPushNotificationConfigRequest,
  GetExtendedAgentCardRequest,
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
import {
  RequestMalformedError,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
} from "@a2a-js/sdk/errors";
import type { A2ARequestHandler, ServerCallContext } from "@a2a-js/sdk/server";
import { cancel } from "../../engine/delegations/cancel.ts";
import { toDelegation } from "../../engine/delegations/parse.ts";
import { read } from "../../engine/delegations/read.ts";
import { delegationEvents } from "../../engine/events/subscribe.ts";
import {
  createPushConfig,
  deletePushConfig,
  listPushConfigs,
} from "../../engine/outbound/push-notifications/configs.ts";
import { isApprovedQuestion } from "../../events/entry.ts";
import type { StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import { ErrandError } from "../../schema/errors.ts";
import { LIMITS } from "../../schema/limits.ts";
import { truncate } from "../../schema/text.ts";
import { waitForResult } from "../http/wait-for-result.ts";
import { SentArtifacts } from "../sent-artifacts.ts";
import { extendedCard, publicCard } from "./cards/card.ts";
import type { A2AContext } from "./context.ts";
import { pushVersionOf, toInlinePushConfig, toPushConfigInput, toSdkPushConfig } from "./push/push-config.ts";
import { toMessage, toMessageJson, toStreamResponse, toTask } from "./sdk.ts";
import { listTasks } from "./tasks/list-tasks.ts";
import { mayAnswerWithMessage, readTask, sendMessage, toMessageAnswer } from "./tasks/send-message.ts";
import { limitUpdate } from "./tasks/size-limit.ts";
import { artifactsOf, toTaskJson, type UpdateJson } from "./tasks/task.ts";
import { isTerminalEvent, toUpdates } from "./tasks/updates.ts";

/** A blocking send waits this long for the end or a question; then it returns the task as it is. */
const WAIT_SECONDS = LIMITS.wait_seconds.value;

export class BrokerA2AHandler implements A2ARequestHandler {
  readonly #context: A2AContext;

  constructor(context: A2AContext) {
    this.#context = context;
  }

  /** Keeps a thrown error before the SDK rewrites it. */
  async #keepThrown<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      this.#context.thrown ??= { error };
      throw error;
    }
  }

  getAgentCard(): Promise<AgentCard> {
    return this.#keepThrown(async () => publicCard(await this.#agent(), this.#context.url));
  }

  getAuthenticatedExtendedAgentCard(_params: GetExtendedAgentCardRequest): Promise<AgentCard> {
    return this.#keepThrown(async () => {
      const { request, url, signer } = this.#context;
      const card = await extendedCard(request.broker, request.principal, await this.#agent(), url);
      return signer ? signer.sign(card) : card;
    });
  }

  sendMessage(params: SendMessageRequest, context?: ServerCallContext): Promise<Message | Task> {
    return this.#keepThrown(async () => {
      const { request } = this.#context;
      const { historyLength, returnImmediately = false } = params.configuration ?? {};
      // Opened before the work is accepted, so that a caller beyond its quota is refused with nothing written.
      const scope = returnImmediately ? null : request.openScope("polls");
      try {
        const sent = await this.#send(params, context);
        const record = scope === null ? sent : await waitForResult(request, sent, WAIT_SECONDS, scope);
        const delegation = toDelegation(record);
        const message = mayAnswerWithMessage(params) ? toMessageAnswer(record, delegation) : null;
        return message ? toMessage(message) : toTask(toTaskJson(delegation, { historyLength }));
      } finally {
        scope?.release();
      }
    });
  }

  async *sendMessageStream(
    params: SendMessageRequest,
    context?: ServerCallContext,
  ): AsyncGenerator<StreamResponse, void, undefined> {
    const record = await this.#keepThrown(async () => {
      // Reserved before the work is accepted, so that accepted work is never refused its stream.
      this.#context.reserveStream();
      return this.#send(params, context);
    }).catch((error: unknown) => {
      this.#context.releaseStream();
      throw error;
    });
    yield* this.#streamUpdates(record, params.configuration?.historyLength, true);
  }

  getTask({ id, historyLength }: GetTaskRequest): Promise<Task> {
    return this.#keepThrown(async () =>
      toTask(toTaskJson(toDelegation(await readTask(this.#context, id)), { historyLength })),
    );
  }

  listTasks(params: ListTasksRequest): Promise<ListTasksResponse> {
    return this.#keepThrown(async () => {
      await this.#agent();
      const { records, ...page } = await listTasks(this.#context, params);
      const shown = { historyLength: params.historyLength, artifacts: params.includeArtifacts ?? false };
      return { ...page, tasks: records.map((record) => toTask(toTaskJson(toDelegation(record), shown))) };
    });
  }

  cancelTask({ id, metadata }: CancelTaskRequest): Promise<Task> {
    return this.#keepThrown(async () => {
      const { broker, principal } = this.#context.request;
      await readTask(this.#context, id);
      const reason = typeof metadata?.reason === "string" ? truncate(metadata.reason, 1024) : undefined;
      try {
        return toTask(toTaskJson(toDelegation(await cancel(broker, principal, id, { reason }))));
      } catch (error) {
        if (!(error instanceof ErrandError && error.code === "already_finished")) throw error;
        throw new TaskNotCancelableError(error.message);
      }
    });
  }

  async *resubscribe({ id }: SubscribeToTaskRequest): AsyncGenerator<StreamResponse, void, undefined> {
    const record = await this.#keepThrown(async () => {
      const found = await readTask(this.#context, id);
      if (found.finished) {
        throw new UnsupportedOperationError(
          `Task ${id} is ${found.get("state")}, so it has no more updates. Call GetTask.`,
        );
      }
      return found;
    });
    yield* this.#streamUpdates(record);
  }

  createTaskPushNotificationConfig(
    params: TaskPushNotificationConfig,
    context?: ServerCallContext,
  ): Promise<TaskPushNotificationConfig> {
    return this.#keepThrown(async () => {
      const { broker, principal } = this.#context.request;
      const { id } = await readTask(this.#context, params.taskId);
      const made = await createPushConfig(
        broker,
        principal,
        id,
        toPushConfigInput(params),
        pushVersionOf(context),
      );
      return toSdkPushConfig(id, made);
    });
  }

  getTaskPushNotificationConfig({
    taskId,
    id,
  }: GetTaskPushNotificationConfigRequest): Promise<TaskPushNotificationConfig> {
    return this.#keepThrown(async () => {
      const { broker, principal } = this.#context.request;
      await readTask(this.#context, taskId);
      const { pushes } = await listPushConfigs(broker, principal, taskId);
      const found = id === "" ? pushes[0] : pushes.find((one) => one.id === id);
      if (!found) throw new TaskNotFoundError(`Task ${taskId} has no push notification config with this id.`);
      return toSdkPushConfig(taskId, found);
    });
  }

  listTaskPushNotificationConfigs({
    taskId,
    pageSize,
    pageToken,
  }: ListTaskPushNotificationConfigsRequest): Promise<ListTaskPushNotificationConfigsResponse> {
    return this.#keepThrown(async () => {
      const { broker, principal } = this.#context.request;
      await readTask(this.#context, taskId);
      const page = { limit: pageSize || undefined, cursor: pageToken || undefined };
      const { pushes, next_cursor } = await listPushConfigs(broker, principal, taskId, page);
      const configs = pushes.map((push) => toSdkPushConfig(taskId, push));
      return { configs, nextPageToken: next_cursor ?? "" };
    });
  }

  deleteTaskPushNotificationConfig({ taskId, id }: DeleteTaskPushNotificationConfigRequest): Promise<void> {
    return this.#keepThrown(async () => {
      const { broker, principal } = this.#context.request;
      await readTask(this.#context, taskId);
      await deletePushConfig(broker, principal, taskId, id);
    });
  }

  #agent() {
    return this.#context.request.broker.agents.get(this.#context.agent);
  }

  #send(params: SendMessageRequest, context?: ServerCallContext): Promise<StoredDelegation> {
    const config = params.configuration?.taskPushNotificationConfig;
    if (!params.message) throw new RequestMalformedError("message is required");
    return sendMessage(this.#context, {
      message: toMessageJson(params.message, this.#context.rawParams),
      metadata: params.metadata,
      push: config && { input: toInlinePushConfig(config), version: pushVersionOf(context) },
    });
  }

  /** The current task, then every later update, up to the end or the next question; `hasSent`: the caller has just sent. */
  async *#streamUpdates(
    record: StoredDelegation,
    historyLength?: number,
    hasSent = false,
  ): AsyncGenerator<StreamResponse, void, undefined> {
    const { signal, request, url } = this.#context;
    const { broker, principal } = request;
    const taskUrl = `${url}rest/tasks/${record.id}`;
    const limited = (update: UpdateJson) => toStreamResponse(limitUpdate(update, taskUrl));
    const delegation = toDelegation(record);
    yield limited({ task: toTaskJson(delegation, { historyLength }) });
    // After an approval that is not the last one, the question is still open.
    if (record.finished || (hasSent && delegation.state === "input_required")) return;
    const sent = new SentArtifacts(artifactsOf(delegation));
    for await (const event of delegationEvents(broker, record, record.get("event_id"), signal)) {
      if (!("entry" in event)) continue;
      const { entry } = event;
      const ended = isTerminalEvent(entry)
        ? toDelegation(await read(broker, principal, record.id))
        : undefined;
      for (const update of toUpdates(entry, sent, ended)) yield limited(update);
      const asks = entry.status === "interrupted" && entry.state === "input_required";
      if (asks && !isApprovedQuestion(entry)) return;
    }
  }
}
