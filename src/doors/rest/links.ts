/**
 * Answer links: what their page asks. Limit: no token is needed, because the secret in the body is one; and nothing is done
 * by GET, because mail programs and scanners follow links.
 */
import { answerByLink, linkQuestion } from "../../engine/links/use.ts";
import {
  linkAnsweredSchema,
  linkAnswerRequestSchema,
  linkQuestionRequestSchema,
  linkQuestionSchema,
} from "../../schema/link.ts";
import { type Route, route } from "../http/route.ts";
import { json } from "../http/text-response.ts";

export const linkRoutes: readonly Route[] = [
  route({
    id: "readLink",
    method: "POST",
    path: "/v1/links/question",
    summary: "Read the question of a link",
    description:
      "For the page of a link in a notification: who asks what, and in whose name it is answered. Changes nothing.",
    body: linkQuestionRequestSchema,
    responses: { 200: linkQuestionSchema },
    notes: { allowsAnonymous: true },
    async handle({ broker }, { body: { token } }) {
      return json(200, await linkQuestion(broker, token));
    },
  }),
  route({
    id: "answerLink",
    method: "POST",
    path: "/v1/links/answer",
    summary: "Answer the question of a link",
    description:
      "In the name of the person that was notified, once. If the question needs the approvals of several people, an approval is one of them. A used, expired, revoked or unknown link is refused in the same words.",
    body: linkAnswerRequestSchema,
    responses: { 200: linkAnsweredSchema },
    notes: { allowsAnonymous: true },
    async handle({ broker }, { body: { token, ...given } }) {
      return json(200, await answerByLink(broker, token, given));
    },
  }),
];
