/**
 * Validates a value with a JSON Schema in which `schemaIssues` found nothing wrong. This is an interpreter of our own:
 * the schema and the value come from strangers, and the validators for Node do not bound their time. This one counts its
 * steps, compiles no code and runs no patterns.
 */
import type { Issue } from "../issues.ts";
import { LIMITS } from "../limits.ts";
import { assertions } from "./assertions.ts";
import { Run, TooComplex } from "./run.ts";

export interface Verdict {
  /** With paths from the value's root; none if it fits. */
  readonly issues: readonly Issue[];
  /** The check was given up after too many steps; `issues` says so. */
  readonly tooComplex: boolean;
}

export function validate(
  schema: unknown,
  value: unknown,
  maxSteps: number = LIMITS.schema_steps.value,
): Verdict {
  const run = new Run(schema, assertions, maxSteps);
  try {
    run.fits(schema, value, null);
    return { issues: run.issues, tooComplex: false };
  } catch (error) {
    if (!(error instanceof TooComplex)) throw error;
    const reason = "too large, or too complex, to be checked against the schema";
    return { issues: [{ path: "", reason }], tooComplex: true };
  }
}
