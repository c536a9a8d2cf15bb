/** Reads what a request proposes. Trusts nothing, because an agent chose all of it. */
import * as z from "zod";
import type { Interrupt } from "../../schema/delegation.ts";

export type Request = Interrupt["requests"][number];
export type Decision = "approve" | "deny";
export const isDecision = (option: unknown): option is Decision => option === "approve" || option === "deny";

/** Without choices of its own, an action or access is approved or denied. What asks for words or data is answered by them. */
export function choicesOf(request: Request, kind: Interrupt["kind"]): readonly unknown[] {
  const { options = [], schema } = request;
  if (options.length > 0) return options;
  return readAction(request) || (kind === "auth" && schema === undefined) ? ["approve", "deny"] : [];
}

/** Whether an approval alone answers the question: no words, no data, no secret. */
export function isDecidable({ kind, requests }: Interrupt): boolean {
  const [only] = requests;
  if (kind === "auth" || requests.length !== 1 || !only) return false;
  return (
    choicesOf(only, kind).includes("approve") && (only.schema === undefined || readAction(only) !== null)
  );
}

const actionSchema = z.object({
  action: z.object({ name: z.string(), arguments: z.unknown() }),
  edit: z.boolean().optional().catch(undefined),
});

export interface Proposal {
  readonly name: string;
  readonly arguments: unknown;
  /** Whether the reader may change the arguments. */
  readonly isEditable: boolean;
}

export function readAction(request: unknown): Proposal | null {
  const { data } = actionSchema.safeParse(request);
  return data ? { ...data.action, isEditable: data.edit === true } : null;
}

const labelSchema = z
  .object({ label: z.string() })
  .or(z.object({ title: z.string() }))
  .or(z.object({ name: z.string() }));

/** An option as a button shows it. */
export function optionText(option: unknown): string {
  if (typeof option === "string") return option;
  const { data } = labelSchema.safeParse(option);
  return data ? (Object.values(data)[0] ?? "") : JSON.stringify(option);
}
