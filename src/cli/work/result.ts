/**
 * Results of delegations with a `result_schema`. A command gets the schema as a file, a program by a flag if it takes it,
 * any other in its prompt; what it says becomes the data of the reply, or the delegation fails. Limit: the broker decides whether a
 * result fits. It is checked here, too, so that the failure has what the program said.
 */
import type { Reply } from "../../client/work.ts";
import type { Delegation } from "../../schema/delegation.ts";
import { parseExact } from "../../schema/exact-numbers.ts";
import { validate } from "../../schema/json-schema/validate.ts";
import { cutBytes } from "./capture.ts";
import { failed } from "./failed-reply.ts";
import type { Preset } from "./presets/preset.ts";

export interface WantedResult {
  readonly schema: unknown;
  /** The program hands the result over apart from its answer, which then is not the result. */
  readonly isSeparate: boolean;
  /** The program's arguments for it. `file` has the schema. */
  readonly args: (file: string) => readonly string[];
  /** What its prompt says of it. */
  readonly words: readonly string[];
}

/** Undefined: the reply may be anything. */
export function wantedResult(
  { result_schema: schema }: Pick<Delegation, "result_schema">,
  preset?: Preset,
): WantedResult | undefined {
  if (schema === undefined) return undefined;
  const own = preset?.result?.takes(schema) ? preset.result : undefined;
  return {
    schema,
    isSeparate: own?.isSeparate === true,
    args: (file) => own?.args(schema, file) ?? [],
    words: own === undefined ? [wordsFor(schema)] : [],
  };
}

const wordsFor = (schema: unknown): string =>
  `Your final message must be JSON only, without any other text. It must fit this JSON Schema:\n${JSON.stringify(schema)}`;

const SAID_MAX = 64 * 1024;

/** The reply whose data is the JSON of this text; one that fails if it is none, or does not fit. */
export function resultReply(text: string, { schema }: Pick<WantedResult, "schema">): Reply {
  let data: unknown;
  try {
    data = parseExact(unfenced(text));
    // A value that is nested too deeply can be read, but not be sent.
    JSON.stringify(data);
  } catch (error) {
    return invalidResult(`it is not JSON: ${error instanceof Error ? error.message : String(error)}`, text);
  }
  const [first] = validate(schema, data).issues;
  if (first !== undefined)
    return invalidResult(first.path === "" ? first.reason : `${first.path}: ${first.reason}`, text);
  return { state: "completed", message: { parts: [{ data }] } };
}

/** Fails the delegation. The reply is what the program said. */
export function invalidResult(why: string, said: string): Reply {
  const reply = failed("result_invalid", `The result does not fit the result_schema: ${why}`);
  return said.trim() === "" ? reply : { ...reply, text: cutBytes(said, SAID_MAX) };
}

const FENCES: readonly string[] = ["```json", "```"];

/** Models put JSON into a fence. */
function unfenced(text: string): string {
  const trimmed = text.trim();
  const end = trimmed.indexOf("\n");
  const isFenced = FENCES.includes(trimmed.slice(0, Math.max(0, end)).trim()) && trimmed.endsWith("\n```");
  return isFenced ? trimmed.slice(end, -3) : trimmed;
}
