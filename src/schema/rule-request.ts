/** A new rule: a standing approval or denial of an agent's proposed actions. Limit: whether it fits one is decided in engine/rules. */
import * as z from "zod";
import { actionPatternSchema } from "./action-pattern.ts";
import { decisionSchema } from "./decision.ts";
import { jsonSchemaSchema } from "./json-schema/json-schema.ts";
import { LIMITS } from "./limits.ts";
import { atMostOne, exactlyOne, withRule } from "./rules.ts";
import { agentNameSchema, boundedArray, givenInstantSchema } from "./values.ts";

const PLACES = ["name", "pointer"] as const;
const TESTS = ["equals", "path_prefix", "items_prefix", "minimum", "maximum", "schema"] as const;

/** `~` is only allowed as `~0` and `~1`. */
const isPointer = (text: string): boolean =>
  text.startsWith("/") && text.split("~").every((rest, at) => at === 0 || /^[01]/.test(rest));

const constraintSchema = z
  .strictObject({
    /** The name of the argument; this or `pointer`. */
    name: z.string().min(1).max(256).optional(),
    /** A JSON Pointer into the arguments, for example `/options/depth`; this or `name`. */
    pointer: z.string().max(256).refine(isPointer, "must be a JSON Pointer, like /options/depth").optional(),
    /** The argument is this JSON value. */
    equals: z.unknown().optional(),
    /**
     * The argument is the path of a file or folder: this one, or one below it. Whole segments are compared: `/srv/a` fits
     * `/srv/a/b`, not `/srv/ab`, and never a path with `.`, `..`, `//`, `\`, `%`, or a character that a shell expands.
     */
    path_prefix: z.string().min(1).max(1024).optional(),
    /** The argument is a list of texts that begins with these, for example `["git", "status"]`. */
    items_prefix: z.array(z.string().max(1024)).min(1).max(32).optional(),
    /** The argument is a number, at least this. */
    minimum: z.number().optional(),
    /** The argument is a number, at most this. */
    maximum: z.number().optional(),
    /** The argument fits this JSON Schema. */
    schema: jsonSchemaSchema.optional(),
  })
  .check(exactlyOne(...PLACES))
  .check(
    withRule<(typeof TESTS)[number]>(
      { needs: TESTS, apart: [] },
      (body) => TESTS.some((test) => body[test] !== undefined),
      { error: `give at least one of ${TESTS.join(", ")}`, path: ["equals"] },
    ),
  );
const shape = {
  /** The agent whose questions it answers. */
  agent: agentNameSchema,
  /** The name of the action; `*` at the end matches any rest. */
  action: actionPatternSchema,
  /** What the arguments must be, up to 32. A missing argument, or one of another kind, never fits. Default: anything. */
  arguments: boundedArray(constraintSchema, 0, 32).default([]),
  /**
   * Whether an argument that `arguments` does not name makes the rule not fit. Default: true for `approve`, false for `deny`.
   */
  only_these_arguments: z.boolean().optional(),
  /** What it answers. */
  decision: decisionSchema,
  /** It ends after this time, 1 second to a year; this or `expires_at`. Default: it applies until it is revoked. */
  for_seconds: z.number().min(1).max(31_536_000).optional(),
  /** It ends at this instant. */
  expires_at: givenInstantSchema.optional(),
  /** How many actions it decides; then it ends. 1 to 1000000. Default: any number. */
  max_uses: z.int().min(1).max(1_000_000).optional(),
  /** For people, up to 500 characters. The agent does not see it. */
  note: z.string().min(1).max(500).optional(),
};

export const ruleRequestSchema = z
  .strictObject(shape)
  .check(atMostOne("for_seconds", "expires_at"))
  .refine(
    (value) => new TextEncoder().encode(JSON.stringify(value)).length <= LIMITS.rule_bytes.value,
    `the rule exceeds ${LIMITS.rule_bytes.value} bytes as JSON`,
  );
export type RuleRequest = z.output<typeof ruleRequestSchema>;
/** A new rule: `agent`, `action`, `decision`, and what the arguments must be. */
export type RuleInput = z.input<typeof ruleRequestSchema>;
