/** Why a delegation was not sent, and the field where it can be corrected. */
import * as z from "zod";
import { ErrandApiError } from "../../client/errors.ts";
import type { Field } from "./values.ts";

export interface FieldProblem {
  /** Null: no single field. */
  readonly field: Field | null;
  readonly error: unknown;
}

const BY_CODE: Readonly<Record<string, Field>> = {
  agent_unknown: "target",
  not_accepted: "target",
  queue_full: "target",
  delegation_not_found: "parent",
  delegation_loop: "parent",
  already_finished: "parent",
  payload_too_large: "files",
  file_not_found: "files",
};

/** The members of the request, by the start of an issue's path. */
const BY_PATH: readonly (readonly [string, Field])[] = [
  ["target", "target"],
  ["task", "task"],
  ["message.parts.0", "task"],
  ["message", "files"],
  ["priority", "priority"],
  ["deadline", "deadline"],
  ["parent_id", "parent"],
  ["auto_approve", "approve"],
  ["budget", "tokens"],
];

const issuesSchema = z.object({ issues: z.array(z.object({ path: z.string() })) });

/** `place`: the field whose content was sent when it failed, if it was one alone. */
export function problemOf(error: unknown, place: Field | null = null): FieldProblem {
  if (!(error instanceof ErrandApiError)) return { field: place, error };
  const [issue] = issuesSchema.safeParse(error.details).data?.issues ?? [];
  const field =
    issue && BY_PATH.find(([path]) => issue.path === path || issue.path.startsWith(`${path}.`))?.[1];
  return { field: field ?? BY_CODE[error.code] ?? place, error };
}
