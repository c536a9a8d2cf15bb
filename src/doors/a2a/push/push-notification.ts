/**
 * An event as it is pushed: in 1.0 the updates that a stream would bring, and at the end the whole task, so that one
 * call says all; in 0.3 the task as it stands. Limit: without history, which the task's receiver can ask for.
 */
import type { Task } from "@a2a-js/sdk";
import { V03PushNotificationSerializer } from "@a2a-js/sdk/compat/v0_3/server";
import { V1PushNotificationSerializer } from "@a2a-js/sdk/server";
import type { PushContext, RenderedPush } from "../../../engine/outbound/push-notifications/render.ts";
import type { Entry } from "../../../events/entry.ts";
import { delegationSchema } from "../../../schema/delegation.ts";
import type { PushVersion } from "../../../schema/push.ts";
import { a2aUrl } from "../../http/links.ts";
import { toStreamResponse, toTask } from "../sdk.ts";
import { Told } from "../tasks/sent-artifacts.ts";
import { boundedTask, boundedUpdate } from "../tasks/size-limit.ts";
import { toTaskJson } from "../tasks/task.ts";
import { isEnd, mayForget, toUpdates } from "../tasks/updates.ts";

const V1 = new V1PushNotificationSerializer();
const V03 = new V03PushNotificationSerializer();
const NOTHING: RenderedPush = { contentType: "application/a2a+json", bodies: [] };

/** `publicUrl` is the base under which the task can be read whole. */
export async function renderPush(
  publicUrl: string,
  entry: Entry,
  version: PushVersion,
  context: PushContext,
): Promise<RenderedPush> {
  const whole = `${a2aUrl(publicUrl, entry.target)}rest/tasks/${entry.delegation_id}`;
  if (version === "0.3" || isEnd(entry)) {
    const task = await taskOf(context, whole);
    if (!task) return NOTHING;
    const update = { payload: { $case: "task", value: task } } as const;
    const { body, contentType } = version === "0.3" ? V03.serialize(update, task) : V1.serialize(update);
    return { contentType, bodies: [body] };
  }
  const told = new Told([]);
  if (mayForget(entry)) for await (const earlier of context.before()) toUpdates(earlier, told);
  const updates = toUpdates(entry, told).map((update) => toStreamResponse(boundedUpdate(update, whole)));
  return { ...NOTHING, bodies: updates.map((update) => V1.serialize(update).body) };
}

async function taskOf({ record }: PushContext, whole: string): Promise<Task | null> {
  const stored = await record();
  if (!stored) return null;
  const delegation = delegationSchema.parse(JSON.parse(stored.json));
  return toTask(boundedTask(toTaskJson(delegation, { historyLength: 0 }), whole));
}
