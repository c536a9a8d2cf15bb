/**
 * The push notifications of an event. In 1.0 they are the updates of a stream, and the whole task at the end; in 0.3 always
 * the current task. Limit: they have no history; the receiver can read the task.
 */
import type { Task } from "@a2a-js/sdk";
import { V03PushNotificationSerializer } from "@a2a-js/sdk/compat/v0_3/server";
import { V1PushNotificationSerializer } from "@a2a-js/sdk/server";
import { toDelegation } from "../../../engine/delegations/parse.ts";
import type { PushContext, RenderedPush } from "../../../engine/outbound/push-notifications/render.ts";
import type { Entry } from "../../../events/entry.ts";
import type { PushVersion } from "../../../schema/push-config.ts";
import { a2aUrl } from "../../http/links.ts";
import { SentArtifacts } from "../../sent-artifacts.ts";
import { toStreamResponse, toTask } from "../sdk.ts";
import { limitTask, limitUpdate } from "../tasks/size-limit.ts";
import { toTaskJson } from "../tasks/task.ts";
import { isTerminalEvent, mayDropArtifacts, toUpdates } from "../tasks/updates.ts";

const V1 = new V1PushNotificationSerializer();
const V03 = new V03PushNotificationSerializer();
const NOTHING: RenderedPush = { contentType: "application/a2a+json", bodies: [] };

/** `publicUrl` is the base of the task's URL. */
export async function renderPush(
  publicUrl: string,
  entry: Entry,
  version: PushVersion,
  context: PushContext,
): Promise<RenderedPush> {
  const taskUrl = `${a2aUrl(publicUrl, entry.target)}rest/tasks/${entry.delegation_id}`;
  if (version === "0.3" || isTerminalEvent(entry)) {
    const task = await currentTask(context, taskUrl);
    if (!task) return NOTHING;
    const update = { payload: { $case: "task", value: task } } as const;
    const { body, contentType } = version === "0.3" ? V03.serialize(update, task) : V1.serialize(update);
    return { contentType, bodies: [body] };
  }
  const sent = new SentArtifacts([]);
  if (mayDropArtifacts(entry)) for await (const earlier of context.before()) toUpdates(earlier, sent);
  const updates = toUpdates(entry, sent).map((update) => toStreamResponse(limitUpdate(update, taskUrl)));
  return { ...NOTHING, bodies: updates.map((update) => V1.serialize(update).body) };
}

async function currentTask({ record }: PushContext, taskUrl: string): Promise<Task | null> {
  const stored = await record();
  if (!stored) return null;
  return toTask(limitTask(toTaskJson(toDelegation(stored), { historyLength: 0 }), taskUrl));
}
