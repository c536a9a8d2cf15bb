/** `elicitation/create` as a question: a form with its schema, an address as a link. */
import * as z from "zod";
import type { Answered, Question } from "../../../client/questions.ts";
import { schemaIssues } from "../../../schema/json-schema/check-schema.ts";
import { oneLine } from "../../show/output.ts";
import { type Asked, digestOf, type Settled } from "./asked.ts";
import type { ElicitationAnswer } from "./connection.ts";
import type { Elicitation } from "./schemas.ts";

const TITLE_MAX = 200;

/** The values that the protocol has for a field of a form. */
const contentSchema = z.record(
  z.string(),
  z.union([z.string(), z.number(), z.boolean(), z.array(z.string())]),
);

/** Undefined for a kind that the worker did not offer to show. */
export function toElicitation(asked: Elicitation): Asked<ElicitationAnswer> | undefined {
  const { mode, message, requestedSchema, url } = asked;
  const title = oneLine(message, TITLE_MAX) || "a question";
  const digest = digestOf({ type: "elicitation", mode, message, requestedSchema, url });
  const common = { title, digest, canceled: { action: "cancel" } } as const;
  if (mode === "url" && url !== undefined)
    return {
      ...common,
      question: { text: `${message}\n${url}`, options: ["approve", "deny"] },
      settle: decided,
    };
  if (mode !== "form" || requestedSchema === undefined) return undefined;
  return { ...common, question: formOf(message, requestedSchema), settle: filled };
}

function formOf(message: string, requested: Record<string, unknown>): Question {
  const schema = withoutPatterns({ ...requested, type: "object" });
  const shown = `${message}\n\nAnswer with data that fits this JSON Schema:\n${JSON.stringify(requested)}`;
  // A schema that the broker cannot enforce is shown, and the agent checks the answer.
  return schemaIssues(schema).length === 0
    ? { text: message || "Fill in the form.", schema }
    : { text: shown };
}

/** The broker enforces no patterns; the agent does. */
function withoutPatterns(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutPatterns);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name, member]) => name !== "pattern" || typeof member !== "string")
      .map(([name, member]) => [name, withoutPatterns(member)]),
  );
}

const decided = ({ decision }: Answered): Settled<ElicitationAnswer> =>
  decision === "approve"
    ? { response: { action: "accept" }, isDenied: false }
    : { response: { action: "decline" }, isDenied: true };

function filled({ decision, data }: Answered): Settled<ElicitationAnswer> {
  const content = contentSchema.safeParse(data).data;
  if (decision === "deny" || content === undefined)
    return { response: { action: "decline" }, isDenied: true };
  return { response: { action: "accept", content }, isDenied: false };
}
