/** Subscriptions: create, list, read, change, resume, test, delete. Limit: to strangers a subscription does not exist. */
import * as z from "zod";
import {
  createSubscription,
  deleteSubscription,
  patchSubscription,
  resumeSubscription,
} from "../../engine/subscriptions/change.ts";
import { describeSubscription, listSubscriptions } from "../../engine/subscriptions/read.ts";
import { testSubscription } from "../../engine/subscriptions/send-test.ts";
import {
  subscriptionIdSchema,
  subscriptionPageSchema,
  subscriptionPatchSchema,
  subscriptionRequestSchema,
  subscriptionSchema,
  subscriptionTestSchema,
  webPushKeySchema,
} from "../../schema/subscription.ts";
import { listQuery } from "../../schema/values.ts";
import { publicPath } from "../http/links.ts";
import { type Route, route } from "../http/route.ts";
import { json, noContent } from "../http/text-response.ts";

const params = z.strictObject({
  /** The subscription. */
  subscription: subscriptionIdSchema,
});

export const subscriptionRoutes: readonly Route[] = [
  route({
    id: "createSubscription",
    method: "POST",
    path: "/v1/subscriptions",
    summary: "Create a subscription",
    description:
      "From now on you are notified of these events by these channels, for as long as the token of this request is valid.",
    body: subscriptionRequestSchema,
    responses: { 201: subscriptionSchema },
    notes: { responseHeaders: ["Location"] },
    async handle({ broker, principal, identity }, { body }) {
      const id = await createSubscription(broker, principal, identity, body);
      return json(201, await describeSubscription(broker, principal, id), {
        location: publicPath(broker.publicUrl(), `/v1/subscriptions/${id}`),
      });
    },
  }),
  route({
    id: "listSubscriptions",
    method: "GET",
    path: "/v1/subscriptions",
    summary: "List subscriptions",
    description: "Lists your subscriptions, oldest first; the operator sees those of all principals.",
    query: z.strictObject(listQuery(z.string().min(1).max(128))),
    responses: { 200: subscriptionPageSchema },
    async handle({ broker, principal }, { query }) {
      return json(200, await listSubscriptions(broker, principal, query));
    },
  }),
  route({
    id: "webPushKey",
    method: "GET",
    path: "/v1/web-push-key",
    summary: "Read the key for Web Push",
    description: "A browser needs it to create a push subscription for the channel `web_push`.",
    responses: { 200: webPushKeySchema },
    async handle({ broker }) {
      return json(200, { key: await broker.webPush.publicKey() });
    },
  }),
  route({
    id: "getSubscription",
    method: "GET",
    path: "/v1/subscriptions/{subscription}",
    summary: "Read a subscription",
    description: "Answers its settings and the state of its channels, without their secrets.",
    params,
    responses: { 200: subscriptionSchema },
    async handle({ broker, principal }, { params: { subscription: id } }) {
      return json(200, await describeSubscription(broker, principal, id));
    },
  }),
  route({
    id: "patchSubscription",
    method: "PATCH",
    path: "/v1/subscriptions/{subscription}",
    summary: "Change some settings of a subscription",
    description:
      "Settings that the body leaves out stay; `deliver` and `filter` are replaced whole. What waits goes to the new channel in the same place.",
    params,
    body: subscriptionPatchSchema,
    responses: { 200: subscriptionSchema },
    async handle({ broker, principal }, { params: { subscription: id }, body }) {
      await patchSubscription(broker, principal, id, body);
      return json(200, await describeSubscription(broker, principal, id));
    },
  }),
  route({
    id: "resumeSubscription",
    method: "POST",
    path: "/v1/subscriptions/{subscription}/resume",
    summary: "Resume a subscription",
    description: "Tries failing and paused channels again at once, with what waits for them.",
    params,
    responses: { 200: subscriptionSchema },
    async handle({ broker, principal, identity }, { params: { subscription: id } }) {
      await resumeSubscription(broker, principal, identity, id);
      return json(200, await describeSubscription(broker, principal, id));
    },
  }),
  route({
    id: "testSubscription",
    method: "POST",
    path: "/v1/subscriptions/{subscription}/test",
    summary: "Test a subscription",
    description:
      "Sends one notification by each channel at once, and answers for each whether it was delivered. You have ten tests, and one more each minute.",
    params,
    responses: { 200: subscriptionTestSchema },
    async handle({ broker, principal }, { params: { subscription: id } }) {
      return json(200, await testSubscription(broker, principal, id));
    },
  }),
  route({
    id: "deleteSubscription",
    method: "DELETE",
    path: "/v1/subscriptions/{subscription}",
    summary: "Delete a subscription",
    description: "What still waits is not sent.",
    params,
    responses: { 204: null },
    async handle({ broker, principal }, { params: { subscription: id } }) {
      await deleteSubscription(broker, principal, id);
      return noContent();
    },
  }),
];
