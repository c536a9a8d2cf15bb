/** Settled questions: who answered what, and what expired unanswered. */
import * as z from "zod";
import { listAnswers } from "../../engine/questions/answers.ts";
import { answersFilterSchema, answersPageSchema } from "../../schema/answered.ts";
import { listQuery } from "../../schema/values.ts";
import { type Route, route } from "../http/route.ts";
import { json } from "../http/text-response.ts";

export const answerRoutes: readonly Route[] = [
  route({
    id: "listAnswers",
    method: "GET",
    path: "/v1/answers",
    summary: "List what was answered, newest first",
    description:
      "Lists the questions that were answered, with who answered, by which way, and what an edit changed, and those that expired unanswered. Of the delegations that the caller may see. A short page is the last only if `next_cursor` is null.",
    query: answersFilterSchema.extend(listQuery(z.string().min(1).max(256))),
    responses: { 200: answersPageSchema },
    async handle(request, { query }) {
      return json(200, await listAnswers(request.broker, request.principal, query));
    },
  }),
];
