/** What a stored event is to subscriptions: a question, votes that no longer count, a question that expired, an end, or nothing. */
import * as z from "zod";
import type { Entry } from "../../events/entry.ts";
import { TERMINAL_EVENT_TYPES } from "../../schema/event.ts";
import { personOf } from "../../schema/vote-text.ts";
import { parseJson } from "../../util/parse-json.ts";
import type { Happening } from "./audience.ts";

const questionSchema = z.object({
  auto: z.literal(true).optional(),
  interrupt: z.looseObject({ id: z.string(), expires_at: z.string() }),
});
const votedSchema = z.object({ interrupt_id: z.string(), voided: z.array(z.string()).default([]) });
const failureSchema = z.object({
  error: z.object({ code: z.string() }),
  /** The question that expired, or that asked for a larger budget, which was denied. */
  interrupt_id: z.string().optional(),
  /** Who denied a larger budget. */
  by: z.string().optional(),
  /** How many approvals it needed. */
  needed: z.number().optional(),
  votes: z.array(z.unknown()).default([]),
});

/** Whether its question expired, alone or with the delegation. */
const hasExpired = ({ error, interrupt_id, by }: z.output<typeof failureSchema>): boolean =>
  error.code === "interrupt_expired" || (interrupt_id !== undefined && by === undefined);

export const isOfInterest = ({ status, type }: Pick<Entry, "status" | "type">): boolean =>
  status === "interrupted" || status === "voted" || TERMINAL_EVENT_TYPES.includes(type);

interface Found {
  readonly happenings: readonly Happening[];
  /** The question that was asked, and when it expires, ms. */
  readonly question?: {
    readonly id: string;
    readonly expires_at: number;
    /** As the event has it. */
    readonly interrupt: unknown;
  };
}

export function happeningsOf(entry: Entry): Found {
  const { target: agent, delegation_id: delegation, delegator, at, state, status, type, more } = entry;
  const common = { agent, delegation, delegator, at };
  if (status === "interrupted") {
    const asked = questionSchema.safeParse(parseJson(`{${more}}`)).data;
    // Another version wrote it, or the broker answers it at once; if it cannot, another event says so.
    if (!asked || asked.auto) return { happenings: [] };
    const { id, expires_at } = asked.interrupt;
    return {
      happenings: [{ kind: "question", ...common, question: id }],
      question: {
        ...{ id, expires_at: Date.parse(expires_at) },
        interrupt: asked.interrupt,
      },
    };
  }
  if (status === "voted") {
    const { interrupt_id: question, voided = [] } = votedSchema.safeParse(parseJson(`{${more}}`)).data ?? {};
    if (question === undefined || voided.length === 0) return { happenings: [] };
    const people = voided.map(personOf);
    const only: Happening["only"] = (principal) => people.includes(personOf(principal.text));
    return { happenings: [{ kind: "question", reason: "voided", ...common, question, only }] };
  }
  if (!TERMINAL_EVENT_TYPES.includes(type)) return { happenings: [] };
  const ended = { kind: "ended" as const, ...common, state };
  const failure = failureSchema.safeParse(parseJson(`{${more}}`)).data;
  if (!failure || !hasExpired(failure)) return { happenings: [ended] };
  const { interrupt_id: question, needed, votes } = failure;
  const expired = {
    ...{ kind: "question_expired" as const, ...common },
    ...(question !== undefined && { question }),
    ...(needed !== undefined && { needed, given: votes.length }),
  };
  return { happenings: [expired, ended] };
}
