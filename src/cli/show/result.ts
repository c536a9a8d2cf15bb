/** The result of a delegation with a result schema. */
import type { Delegation } from "../../schema/delegation.ts";
import { jsonText } from "./output.ts";

/** On one line; undefined if it asked for none, or has none. */
export function resultText({
  result_schema,
  reply,
}: Pick<Delegation, "result_schema" | "reply">): string | undefined {
  if (result_schema === undefined) return undefined;
  const part = reply?.parts.find((one) => one.data !== undefined);
  return part && jsonText(part.data);
}
