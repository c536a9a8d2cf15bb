/** Tools for schedules: one reads, one changes, so that a client may ask its user before the second only. */
import * as z from "zod";
import {
  createSchedule,
  deleteSchedule,
  patchSchedule,
  pauseSchedule,
  resumeSchedule,
  runSchedule,
} from "../../../engine/schedules/change.ts";
import { describeSchedule, listSchedules, runsOf, toRun } from "../../../engine/schedules/read.ts";
import { ErrandError } from "../../../schema/errors.ts";
import { invalidRequest, readAs } from "../../../schema/issues.ts";
import { jsonObjectSchema } from "../../../schema/json-object.ts";
import { scheduleIdSchema, schedulePatchSchema, scheduleRequestSchema } from "../../../schema/schedule.ts";
import { check } from "../../http/route.ts";
import type { McpContext } from "../context.ts";
import { ByteBudget } from "./content.ts";
import { delegateShape } from "./delegate-tools.ts";
import { VIEW_BYTES } from "./delegation-view.ts";
import { scheduleText, scheduleViewSchema, toScheduleView } from "./schedule-view.ts";
import { defineTool, type Tool, type ToolOutput } from "./tool.ts";
import { CALLERS, READERS } from "./visibility.ts";

const ACTIONS = ["create", "change", "pause", "resume", "run", "delete"] as const;
type Action = (typeof ACTIONS)[number];

/** Of the history of one schedule. */
const SHOWN_RUNS = 20;

const { parent_id: _parent, idempotency_key: _key, ...repeated } = delegateShape;
const delegationSchema = z.strictObject(repeated);

/** The arguments of delegate_task as the body of a submit; undefined as it is. */
function toDelegation(given: Readonly<Record<string, unknown>> | undefined) {
  if (given === undefined) return undefined;
  const { data, error } = readAs(delegationSchema, given);
  if (error) throw invalidRequest(error, { whole: "The delegation", under: "delegation" });
  const { agent, auto_approve, ...rest } = data;
  return { target: agent, ...rest, ...(auto_approve && { auto_approve }) };
}

const settings = scheduleRequestSchema.shape;
const input = {
  action: z.enum(ACTIONS).describe("run delegates once, now, also while it is paused."),
  schedule_id: scheduleIdSchema.optional().describe("Of list_schedules; every action but create needs it."),
  delegation: jsonObjectSchema
    .optional()
    .describe(
      "What to delegate: the arguments of delegate_task, {agent, task, ttl_seconds, budget, …}, without parent_id and idempotency_key. Required for create; change replaces it whole.",
    ),
  cron: settings.cron.describe("Minute, hour, day of the month, month, weekday: 30 9 * * MON-FRI."),
  time_zone: settings.time_zone.describe("IANA name, for cron. Default: UTC."),
  every_seconds: settings.every_seconds.describe("Seconds between two times, instead of cron."),
  overlap: settings.overlap
    .unwrap()
    .optional()
    .describe("At a time at which an earlier delegation has not ended. Default: queue."),
  missed: settings.missed
    .unwrap()
    .optional()
    .describe("For times at which the broker was away. Default: one."),
  name: settings.name.describe("For people."),
  idempotency_key: z
    .string()
    .min(1)
    .max(255)
    .optional()
    .describe("Any text, for create and run. A repeated call with the same key is the same one."),
};
type Input = z.output<z.ZodObject<typeof input>>;

const CHANGED = "only create and change take it";

async function manage(context: McpContext, given: Input): Promise<ToolOutput> {
  const { broker, principal, request } = context;
  const { action, schedule_id, idempotency_key, delegation: sent, ...rest } = given;
  const idempotencyKey = idempotency_key ?? context.idempotencyKeyFor(given);
  const creator = { principal, identity: request.identity, idempotencyKey };
  const named = Object.entries({ ...rest, delegation: sent }).filter(([, value]) => value !== undefined);
  if (action === "create") {
    if (schedule_id !== undefined) throw wrong("schedule_id", "a new schedule gets its id from the broker");
    const delegation = toDelegation(sent);
    const body = check(scheduleRequestSchema, { ...rest, delegation }, "arguments");
    const { schedule } = await createSchedule(broker, creator, body, delegation ?? {});
    return show(context, schedule.id);
  }
  if (schedule_id === undefined) throw wrong("schedule_id", `${action} needs it; see list_schedules`);
  const [[extra] = []] = action === "change" ? [] : named;
  if (extra !== undefined) throw wrong(extra, CHANGED);
  return act[action](context, schedule_id, { rest, delegation: toDelegation(sent), creator });
}

interface Given {
  readonly rest: Readonly<Record<string, unknown>>;
  readonly delegation: Record<string, unknown> | undefined;
  readonly creator: Parameters<typeof resumeSchedule>[1];
}

const act: Readonly<
  Record<Exclude<Action, "create">, (context: McpContext, id: string, given: Given) => Promise<ToolOutput>>
> = {
  async change(context, id, { rest, delegation }) {
    const patch = check(schedulePatchSchema, { ...rest, ...(delegation && { delegation }) }, "arguments");
    await patchSchedule(context.broker, context.principal, id, patch, delegation);
    return show(context, id);
  },
  async pause(context, id) {
    await pauseSchedule(context.broker, context.principal, id);
    return show(context, id);
  },
  async resume(context, id, { creator }) {
    await resumeSchedule(context.broker, creator, id);
    return show(context, id);
  },
  async run({ broker }, id, { creator }) {
    const { delegation_id } = toRun(await runSchedule(broker, creator, id));
    const next = "Call check_task_status with the delegation_id.";
    return {
      text: `Schedule ${id} delegated ${delegation_id}. ${next}`,
      data: { schedule_id: id, delegation_id, next },
    };
  },
  async delete({ broker, principal }, id) {
    await deleteSchedule(broker, principal, id);
    return { text: `Deleted ${id}. Its delegations stay.`, data: { schedule_id: id, deleted: true } };
  },
};

async function show({ broker, principal }: McpContext, id: string): Promise<ToolOutput> {
  const schedule = await describeSchedule(broker, principal, id);
  const view = toScheduleView(schedule, new ByteBudget(VIEW_BYTES.single));
  return { text: scheduleText(view), data: { schedule_id: id, schedule: view } };
}

const wrong = (path: string, reason: string): ErrandError =>
  new ErrandError("invalid_request", `${path}: ${reason}`, { details: { issues: [{ path, reason }] } });

export const scheduleTools: readonly Tool[] = [
  defineTool({
    name: "list_schedules",
    title: "List schedules",
    description:
      "List what is delegated again and again at times of a calendar, with the next times and the last runs. With schedule_id, show that one with more of its history. manage_schedule creates and changes schedules.",
    visibleTo: READERS,
    readOnly: true,
    input: {
      schedule_id: scheduleIdSchema.optional(),
      cursor: z.string().min(1).max(128).optional(),
      limit: z.int().min(1).max(50).default(10),
    },
    output: {
      schedules: z.array(scheduleViewSchema),
      next_cursor: z.string().nullable(),
    },
    async handle({ broker, principal }, { schedule_id: id, ...page }) {
      if (id !== undefined) {
        const view = toScheduleView(
          await describeSchedule(broker, principal, id),
          new ByteBudget(VIEW_BYTES.full),
        );
        const runs = (await runsOf(broker, principal, id)).slice(0, SHOWN_RUNS);
        return {
          text: scheduleText({ ...view, runs }),
          data: { schedules: [{ ...view, runs }], next_cursor: null },
        };
      }
      const { schedules, next_cursor } = await listSchedules(broker, principal, page);
      const views = schedules.map((one) => toScheduleView(one, new ByteBudget(VIEW_BYTES.list)));
      const text = views.length === 0 ? "No schedules." : views.map(scheduleText).join("\n\n");
      const more = next_cursor === null ? "" : `\n\nNext cursor: ${next_cursor}`;
      return { text: `${text}${more}`, data: { schedules: views, next_cursor } };
    },
  }),
  defineTool({
    name: "manage_schedule",
    title: "Manage a schedule",
    description:
      "Delegate again and again, by cron or every so many seconds: create a schedule, change its settings, pause, resume, run it now, or delete it with its history. It delegates in your name, for as long as your token is valid. For one task at a later time, use delegate_task_async with delay_seconds instead.",
    visibleTo: CALLERS,
    destructive: true,
    input,
    output: {
      schedule_id: z.string(),
      schedule: scheduleViewSchema,
      /** What run delegated. */
      delegation_id: z.string(),
      deleted: z.boolean(),
      next: z.string(),
    },
    handle: manage,
  }),
];
