/**
 * Decides whether a rule fits a proposed action. Each comparison spends steps of one budget for the whole question, because
 * rules, schemas and arguments come from strangers. If it is unclear whether an argument fits, no rule approves, and if a denial
 * may fit, a person decides.
 */
import { matchesAction } from "../../schema/action-pattern.ts";
import type { Action } from "../../schema/delegation.ts";
import { assertions } from "../../schema/json-schema/assertions.ts";
import { isObject } from "../../schema/json-schema/keywords.ts";
import { Run, TooComplex } from "../../schema/json-schema/run.ts";
import type { ArgumentConstraint } from "../../schema/rule.ts";
import { type Fit, fitOfPath, MAX_PATH } from "./paths.ts";
import type { StoredRule } from "./stored-rule.ts";

/** The steps that are left. */
export interface Steps {
  left: number;
}

/** As the checks of JSON Schemas count. */
const CHARACTERS_A_STEP = 16;
const NOWHERE = Symbol("no such argument");

export function fitOf(
  { action: pattern, arguments: constraints, only_these_arguments }: StoredRule["doc"],
  action: Action,
  steps: Steps,
): Fit {
  if (!matchesAction(pattern, action.name)) return "no";
  steps.left -= 1 + constraints.length;
  if (steps.left < 0) return "unclear";
  const places = constraints.map((constraint) => ({ constraint, steps: stepsTo(constraint) }));
  if (only_these_arguments) {
    const named = places.map((place) => place.steps);
    const isNamed = isCovered(action.arguments, named, steps);
    if (isNamed !== "yes") return isNamed;
  }
  let fit: Fit = "yes";
  for (const { constraint, steps: path } of places) {
    const one = fitOfValue(constraint, valueAt(action.arguments, path), steps);
    if (one === "no") return "no";
    if (one === "unclear") fit = "unclear";
  }
  return fit;
}

function stepsTo({ name, pointer = "" }: ArgumentConstraint): readonly string[] {
  if (name !== undefined) return [name];
  return pointer
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** Only own members count, and only the indexes of a list: nothing is inherited. */
function valueAt(root: unknown, path: readonly string[]): unknown {
  let value = root;
  for (const name of path) {
    if (Array.isArray(value)) {
      if (!/^(?:0|[1-9]\d{0,8})$/.test(name) || Number(name) >= value.length) return NOWHERE;
      value = value[Number(name)];
    } else {
      if (!isObject(value) || !Object.hasOwn(value, name)) return NOWHERE;
      value = value[name];
    }
  }
  return value;
}

/** Whether every part of the value is at one of these places, or within one. */
function isCovered(value: unknown, places: readonly (readonly string[])[], steps: Steps): Fit {
  if (places.some((place) => place.length === 0)) return "yes";
  if (typeof value !== "object" || value === null) return "no";
  const names = Object.keys(value);
  // Listing the names takes time, too.
  steps.left -= names.length;
  for (const name of names) {
    steps.left -= places.length;
    if (steps.left < 0) return "unclear";
    const within = places.filter(([first]) => first === name).map((place) => place.slice(1));
    if (within.length === 0) return "no";
    const fit = isCovered(Reflect.get(value, name), within, steps);
    if (fit !== "yes") return fit;
  }
  // An empty object or list below the top is an argument of its own.
  return names.length > 0 || places.length === 0 ? "yes" : "no";
}

function fitOfValue(constraint: ArgumentConstraint, value: unknown, steps: Steps): Fit {
  if (value === NOWHERE) return "no";
  const { equals, path_prefix, items_prefix, minimum, maximum, schema } = constraint;
  const fits: Fit[] = [];
  if (equals !== undefined) fits.push(fitOfSchema({ const: equals }, value, steps));
  if (path_prefix !== undefined) {
    steps.left -= (typeof value === "string" ? Math.min(MAX_PATH, value.length) : 0) / CHARACTERS_A_STEP;
    fits.push(steps.left < 0 ? "unclear" : fitOfPath(path_prefix, value));
  }
  if (items_prefix !== undefined) fits.push(fitOfItems(items_prefix, value));
  if (minimum !== undefined || maximum !== undefined) fits.push(fitOfNumber({ minimum, maximum }, value));
  if (schema !== undefined) fits.push(fitOfSchema(schema, value, steps));
  if (fits.includes("no")) return "no";
  return fits.includes("unclear") ? "unclear" : "yes";
}

function fitOfItems(prefix: readonly string[], value: unknown): Fit {
  if (!Array.isArray(value)) return "unclear";
  return prefix.every((item, at) => value[at] === item) ? "yes" : "no";
}

function fitOfNumber(
  { minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY }: ArgumentConstraint,
  value: unknown,
): Fit {
  if (typeof value !== "number" || !Number.isFinite(value)) return "unclear";
  return value >= minimum && value <= maximum ? "yes" : "no";
}

function fitOfSchema(schema: unknown, value: unknown, steps: Steps): Fit {
  if (steps.left <= 0) return "unclear";
  const run = new Run(schema, assertions, steps.left);
  try {
    return run.fits(schema, value, null) ? "yes" : "no";
  } catch (error) {
    if (!(error instanceof TooComplex)) throw error;
    return "unclear";
  } finally {
    steps.left -= run.steps;
  }
}
