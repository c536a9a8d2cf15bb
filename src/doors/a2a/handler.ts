/**
 * A2A's operations over the engine's verbs: one instance for each request, no state of its own, so that every gateway
 * serves every task, before and after a restart. Limit: a client that leaves ends its stream or its wait, never the
 * task.
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
import { read } from "../../engine/delegations/read.ts";
import { delegationEvents } from "../../engine/events/subscribe.ts";
import { createPush, deletePush, listPushes } from "../../engine/outbound/push-notifications/configs.ts";
import type { StoredDelegation } from "../../lifecycle/record.ts";
import { type Delegation, delegationSchema } from "../../schema/delegation.ts";
import { ErrandError } from "../../schema/errors.ts";
import { LIMITS } from "../../schema/limits.ts";
import { truncate } from "../../schema/text.ts";
import { waitForResult } from "../http/wait-for-result.ts";
import { extendedCard, publicCard } from "./cards/card.ts";
import type { Scope } from "./context.ts";
import { toInlinePush, toPushConfig, toPushInput, versionFor } from "./push/push-config.ts";
import { toMessageJson, toStreamResponse, toTask } from "./sdk.ts";
import { listTasks } from "./tasks/list-tasks.ts";
import { readTask, send } from "./tasks/send-message.ts";
import { Told } from "./tasks/sent-artifacts.ts";
import { boundedUpdate } from "./tasks/size-limit.ts";
import { artifactsOf, toTaskJson, type UpdateJson } from "./tasks/task.ts";
import { isEnd, toUpdates } from "./tasks/updates.ts";

/** How long a blocking send waits for the end or a question; then the task is shown as it stands. */
const WAIT_SECONDS = LIMITS.wait_seconds.value;

const parsed = (record: StoredDelegation): Delegation => delegationSchema.parse(JSON.parse(record.json));

export class BrokerA2AHandler implements A2ARequestHandler {
  readonly #scope: Scope;

  constructor(scope: Scope) {
    this.#scope = scope;
  }

  /** What is thrown is kept before the SDK makes an answer of it. */
  async #kept<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      this.#scope.failure ??= { error };
      throw error;
    }
  }

  getAgentCard(): Promise<AgentCard> {
    return this.#kept(async () => publicCard(await this.#agent(), this.#scope.url));
  }

  getAuthenticatedExtendedAgentCard(_params: GetExtendedAgentCardRequest): Promise<AgentCard> {
    return this.#kept(async () => {
      const { call, url, signer } = this.#scope;
      const card = await extendedCard(call.broker, call.principal, await this.#agent(), url);
      return signer ? signer.sign(card) : card;
    });
  }

  sendMessage(params: SendMessageRequest, context?: ServerCallContext): Promise<Task> {
    return this.#kept(async () => {
      const { call } = this.#scope;
      const { historyLength, returnImmediately = false } = params.configuration ?? {};
      // Held before anything is accepted: whoever waits too often already is refused with nothing written.
      const hold = returnImmediately ? null : call.openScope("polls");
      try {
        const sent = await this.#send(params, context);
        const record = hold === null ? sent : await waitForResult(call, sent, WAIT_SECONDS, hold);
        return toTask(toTaskJson(parsed(record), { historyLength }));
      } finally {
        hold?.release();
      }
    });
  }

  async *sendMessageStream(
    params: SendMessageRequest,
    context?: ServerCallContext,
  ): AsyncGenerator<StreamResponse, void, undefined> {
    const record = await this.#kept(async () => {
      // Before anything is accepted: what is refused later would be work that nobody watches.
      this.#scope.takePlace();
      return this.#send(params, context);
    }).catch((error: unknown) => {
      this.#scope.leavePlace();
      throw error;
    });
    yield* this.#follow(record, params.configuration?.historyLength);
  }

  getTask({ id, historyLength }: GetTaskRequest): Promise<Task> {
    return this.#kept(async () =>
      toTask(toTaskJson(parsed(await readTask(this.#scope, id)), { historyLength })),
    );
  }

  listTasks(params: ListTasksRequest): Promise<ListTasksResponse> {
    return this.#kept(async () => {
      await this.#agent();
      const { records, ...page } = await listTasks(this.#scope, params);
      const shown = { historyLength: params.historyLength, artifacts: params.includeArtifacts ?? false };
      return { ...page, tasks: records.map((record) => toTask(toTaskJson(parsed(record), shown))) };
    });
  }

  cancelTask({ id, metadata }: CancelTaskRequest): Promise<Task> {
    return this.#kept(async () => {
      const { broker, principal } = this.#scope.call;
      await readTask(this.#scope, id);
      const reason = typeof metadata?.reason === "string" ? truncate(metadata.reason, 1024) : undefined;
      try {
        return toTask(toTaskJson(parsed(await cancel(broker, principal, id, { reason, cascade: true }))));
      } catch (error) {
        if (!(error instanceof ErrandError && error.code === "already_finished")) throw error;
        throw new TaskNotCancelableError(error.message);
      }
    });
  }

  async *resubscribe({ id }: SubscribeToTaskRequest): AsyncGenerator<StreamResponse, void, undefined> {
    const record = await this.#kept(async () => {
      const found = await readTask(this.#scope, id);
      if (found.finished) {
        throw new UnsupportedOperationError(`Task ${id} is ${found.state}: nothing follows. Get it instead.`);
      }
      return found;
    });
    yield* this.#follow(record);
  }

  createTaskPushNotificationConfig(
    params: TaskPushNotificationConfig,
    context?: ServerCallContext,
  ): Promise<TaskPushNotificationConfig> {
    return this.#kept(async () => {
      const { broker, principal } = this.#scope.call;
      const { id } = await readTask(this.#scope, params.taskId);
      const made = await createPush(broker, principal, id, toPushInput(params), versionFor(context));
      return toPushConfig(id, made);
    });
  }

  getTaskPushNotificationConfig({
    taskId,
    id,
  }: GetTaskPushNotificationConfigRequest): Promise<TaskPushNotificationConfig> {
    return this.#kept(async () => {
      const { broker, principal } = this.#scope.call;
      await readTask(this.#scope, taskId);
      const { pushes } = await listPushes(broker, principal, taskId);
      const found = id === "" ? pushes[0] : pushes.find((one) => one.id === id);
      if (!found) throw new TaskNotFoundError(`Task ${taskId} has no push notification config of that id.`);
      return toPushConfig(taskId, found);
    });
  }

  listTaskPushNotificationConfigs({
    taskId,
    pageSize,
    pageToken,
  }: ListTaskPushNotificationConfigsRequest): Promise<ListTaskPushNotificationConfigsResponse> {
    return this.#kept(async () => {
      const { broker, principal } = this.#scope.call;
      await readTask(this.#scope, taskId);
      const page = { limit: pageSize || undefined, cursor: pageToken || undefined };
      const { pushes, next_cursor } = await listPushes(broker, principal, taskId, page);
      const configs = pushes.map((push) => toPushConfig(taskId, push));
      return { configs, nextPageToken: next_cursor ?? "" };
    });
  }

  deleteTaskPushNotificationConfig({ taskId, id }: DeleteTaskPushNotificationConfigRequest): Promise<void> {
    return this.#kept(async () => {
      const { broker, principal } = this.#scope.call;
      await readTask(this.#scope, taskId);
      await deletePush(broker, principal, taskId, id);
    });
  }

  #agent() {
    return this.#scope.call.broker.agents.get(this.#scope.agent);
  }

  #send(params: SendMessageRequest, context?: ServerCallContext): Promise<StoredDelegation> {
    const config = params.configuration?.taskPushNotificationConfig;
    if (!params.message) throw new RequestMalformedError("message is required");
    return send(this.#scope, {
      message: toMessageJson(params.message, this.#scope.raw),
      metadata: params.metadata,
      push: config && { input: toInlinePush(config), version: versionFor(context) },
    });
  }

  /** The task as it stands, then strictly what follows, to its end or to the next question. */
  async *#follow(
    record: StoredDelegation,
    historyLength?: number,
  ): AsyncGenerator<StreamResponse, void, undefined> {
    const { signal, call, url } = this.#scope;
    const { broker, principal } = call;
    const whole = `${url}rest/tasks/${record.id}`;
    const bounded = (update: UpdateJson) => toStreamResponse(boundedUpdate(update, whole));
    const delegation = parsed(record);
    yield bounded({ task: toTaskJson(delegation, { historyLength }) });
    if (record.finished) return;
    const told = new Told(artifactsOf(delegation));
    for await (const event of delegationEvents(broker, record, record.event_id, signal)) {
      if (!("entry" in event)) continue;
      const { entry } = event;
      const ended = isEnd(entry) ? parsed(await read(broker, principal, record.id)) : undefined;
      for (const update of toUpdates(entry, told, ended)) yield bounded(update);
      if (entry.status === "interrupted" && entry.state === "input_required") return;
    }
  }
}
