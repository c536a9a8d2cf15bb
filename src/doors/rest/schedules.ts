/** Schedules: create, list, read, change, pause, resume, run now, delete. Limit: to strangers a schedule does not exist. */
import * as z from "zod";
import {
  createSchedule,
  deleteSchedule,
  patchSchedule,
  pauseSchedule,
  resumeSchedule,
  runSchedule,
} from "../../engine/schedules/change.ts";
import { describeSchedule, listSchedules, runsOf, toRun } from "../../engine/schedules/read.ts";
import { isJsonObject } from "../../schema/json-object.ts";
import {
  scheduleIdSchema,
  schedulePageSchema,
  schedulePatchSchema,
  scheduleRequestSchema,
  scheduleRunSchema,
  scheduleRunsSchema,
  scheduleSchema,
} from "../../schema/schedule.ts";
import { listQuery } from "../../schema/values.ts";
import type { AuthenticatedRequest } from "../http/authenticated-request.ts";
import { publicPath } from "../http/links.ts";
import { type Route, route } from "../http/route.ts";
import { json, noContent } from "../http/text-response.ts";

const params = z.strictObject({
  /** The schedule. */
  schedule: scheduleIdSchema,
});

const creatorOf = ({ principal, identity, idempotencyKey }: AuthenticatedRequest) => ({
  principal,
  identity,
  idempotencyKey,
});

const withDelegation = z.object({ delegation: z.record(z.string(), z.unknown()).optional() });
/** The delegation of a checked body, without defaults. */
const delegationOf = (raw: unknown) => (isJsonObject(raw) ? withDelegation.parse(raw).delegation : undefined);

export const scheduleRoutes: readonly Route[] = [
  route({
    id: "createSchedule",
    method: "POST",
    path: "/v1/schedules",
    summary: "Create a schedule",
    description:
      "Delegates again and again, in your name, for as long as the token of this request is valid. A repeat with the same Idempotency-Key answers the same schedule.",
    body: scheduleRequestSchema,
    responses: { 200: scheduleSchema, 201: scheduleSchema },
    notes: { requestHeaders: ["Idempotency-Key"], responseHeaders: ["Location"] },
    async handle(request, { body, raw }) {
      const { broker, principal } = request;
      const delegation = delegationOf(raw) ?? {};
      const { schedule, replayed } = await createSchedule(broker, creatorOf(request), body, delegation);
      const described = await describeSchedule(broker, principal, schedule.id);
      const location = publicPath(broker.publicUrl(), `/v1/schedules/${schedule.id}`);
      return json(replayed ? 200 : 201, described, { location });
    },
  }),
  route({
    id: "listSchedules",
    method: "GET",
    path: "/v1/schedules",
    summary: "List schedules",
    description:
      "Lists your schedules, oldest first; operators, approvers and viewers see those of all principals.",
    query: z.strictObject(listQuery(z.string().min(1).max(128))),
    responses: { 200: schedulePageSchema },
    async handle({ broker, principal }, { query }) {
      return json(200, await listSchedules(broker, principal, query));
    },
  }),
  route({
    id: "getSchedule",
    method: "GET",
    path: "/v1/schedules/{schedule}",
    summary: "Read a schedule",
    description: "Answers its settings, its next three ticks and its newest runs.",
    params,
    responses: { 200: scheduleSchema },
    async handle({ broker, principal }, { params: { schedule: id } }) {
      return json(200, await describeSchedule(broker, principal, id));
    },
  }),
  route({
    id: "patchSchedule",
    method: "PATCH",
    path: "/v1/schedules/{schedule}",
    summary: "Change some settings of a schedule",
    description:
      "Settings that the body leaves out stay, null resets one, `delegation` is replaced whole. A changed calendar counts from now. For its owner and the operator.",
    params,
    body: schedulePatchSchema,
    responses: { 200: scheduleSchema },
    async handle({ broker, principal }, { params: { schedule: id }, body, raw }) {
      await patchSchedule(broker, principal, id, body, delegationOf(raw));
      return json(200, await describeSchedule(broker, principal, id));
    },
  }),
  route({
    id: "pauseSchedule",
    method: "POST",
    path: "/v1/schedules/{schedule}/pause",
    summary: "Pause a schedule",
    description: "It makes no ticks until it is resumed. For its owner and the operator.",
    params,
    responses: { 200: scheduleSchema },
    async handle({ broker, principal }, { params: { schedule: id } }) {
      await pauseSchedule(broker, principal, id);
      return json(200, await describeSchedule(broker, principal, id));
    },
  }),
  route({
    id: "resumeSchedule",
    method: "POST",
    path: "/v1/schedules/{schedule}/resume",
    summary: "Resume a schedule",
    description:
      "It continues with the next tick; those in between are left out. From now on it depends on the token of this request. For its owner and the operator.",
    params,
    responses: { 200: scheduleSchema },
    async handle(request, { params: { schedule: id } }) {
      const { broker, principal } = request;
      await resumeSchedule(broker, creatorOf(request), id);
      return json(200, await describeSchedule(broker, principal, id));
    },
  }),
  route({
    id: "runSchedule",
    method: "POST",
    path: "/v1/schedules/{schedule}/run",
    summary: "Run a schedule now",
    description:
      "Delegates at once in the name of its owner, outside the calendar, also while it is paused. For its owner and the operator.",
    params,
    responses: { 202: scheduleRunSchema },
    notes: { requestHeaders: ["Idempotency-Key"] },
    async handle(request, { params: { schedule: id } }) {
      return json(202, toRun(await runSchedule(request.broker, creatorOf(request), id)));
    },
  }),
  route({
    id: "listScheduleRuns",
    method: "GET",
    path: "/v1/schedules/{schedule}/runs",
    summary: "Read the history of a schedule",
    description:
      "Answers its newest 100 ticks and manual runs, each with its delegation or why it made none.",
    params,
    responses: { 200: scheduleRunsSchema },
    async handle({ broker, principal }, { params: { schedule: id } }) {
      return json(200, { runs: await runsOf(broker, principal, id) });
    },
  }),
  route({
    id: "deleteSchedule",
    method: "DELETE",
    path: "/v1/schedules/{schedule}",
    summary: "Delete a schedule",
    description: "Its history is deleted, too; its delegations stay. For its owner and the operator.",
    params,
    responses: { 204: null },
    async handle({ broker, principal }, { params: { schedule: id } }) {
      await deleteSchedule(broker, principal, id);
      return noContent();
    },
  }),
];
