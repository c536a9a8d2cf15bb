/**
 * The fields of a form for a JSON value. The schema decides where the value fits it and a form can express it, else the
 * type of the value does. What neither can express is a field of JSON, for that part alone.
 */
import type { Path } from "../../schema/changes.ts";
import { isObject } from "../../schema/json-schema/keywords.ts";
import { fits, type Shape, type ShapeKind, shapeOf, startOf } from "./shape.ts";

export type Kind = ShapeKind | "none" | "json";

export interface Field {
  readonly path: Path;
  readonly kind: Kind;
  /** Undefined: there is no such member now. */
  readonly value: unknown;
  /** Of a member, its own; of an item, its number. */
  readonly name: string;
  readonly title: string;
  readonly description: string;
  /** Limits in words, and what the reader should know. */
  readonly hints: readonly string[];
  readonly isRequired: boolean;
  /** The schema says that the member may be left out. */
  readonly isOptional: boolean;
  readonly isSecret: boolean;
  readonly isInteger: boolean;
  readonly min: number | undefined;
  readonly max: number | undefined;
  readonly format: string;
  readonly choices: readonly unknown[];
  /** Of a group its members, of a list its items. */
  readonly fields: readonly Field[];
  readonly schema: unknown;
}

const MAX_DEPTH = 4;
/** Of a whole form. More would be no help, and would hold up the page. */
const MAX_FIELDS = 200;

interface Place {
  readonly path: Path;
  readonly name: string;
  /** Null: no schema knows it. */
  readonly isRequired: boolean | null;
}

interface Budget {
  left: number;
}

/** The fields of the members. None: no form fits, because it is no object, is empty, or has too many members. */
export function fieldsOf(value: unknown, schema?: unknown): readonly Field[] {
  if (!isObject(value)) return [];
  const budget = { left: MAX_FIELDS };
  return fieldOf(value, schema, { path: [], name: "", isRequired: true }, budget).fields;
}

function fieldOf(value: unknown, schema: unknown, place: Place, budget: Budget): Field {
  const shape = shapeOf(schema);
  const { path, name, isRequired } = place;
  const wanted = kindOf(value, shape, path.length);
  const fields = membersOf(value, wanted, shape, path, budget);
  const isEmpty = wanted === "group" && value !== undefined && fields?.length === 0;
  const isOther = value !== undefined && value !== null && !fits(value, shape);
  return {
    path,
    kind: fields === null || isEmpty ? "json" : wanted,
    value,
    name,
    title: shape.title ?? name,
    description: shape.description,
    hints: [...shape.bounds, ...(isOther ? ["not what the schema asks for"] : [])],
    isRequired: isRequired === true,
    isOptional: isRequired === false,
    isSecret: shape.isSecret,
    isInteger: shape.isInteger,
    min: shape.min,
    max: shape.max,
    format: shape.format,
    // The present value can be kept.
    choices: isOther && wanted === "choice" ? [value, ...shape.choices] : shape.choices,
    fields: fields ?? [],
    schema,
  };
}

function kindOf(value: unknown, shape: Shape, depth: number): Kind {
  const isDeep = depth > MAX_DEPTH;
  const kind = value === undefined || fits(value, shape) ? shape.kind : null;
  if (kind !== null) return isDeep && (kind === "list" || kind === "group") ? "json" : kind;
  switch (typeof value) {
    case "string":
    case "number":
    case "boolean":
      if (shape.kind === "choice") return "choice";
      return typeof value === "string" ? "text" : typeof value === "number" ? "number" : "yes";
    case "object":
      if (value === null) return "none";
      if (isDeep) return "json";
      return Array.isArray(value) ? "list" : "group";
    default:
      return "json";
  }
}

/** Null: no fields fit, or too many are needed. */
function membersOf(
  value: unknown,
  kind: Kind,
  shape: Shape,
  path: Path,
  budget: Budget,
): readonly Field[] | null {
  if (kind === "list") {
    if (value === undefined) return [];
    if (!Array.isArray(value) || !isUniform(value) || !take(budget, value.length)) return null;
    return value.map((item: unknown, index) =>
      fieldOf(
        item,
        shape.items,
        { path: [...path, index], name: String(index + 1), isRequired: null },
        budget,
      ),
    );
  }
  // A group that is missing is added as a whole, before its fields are shown.
  if (kind !== "group" || value === undefined) return [];
  const members = isObject(value) ? value : {};
  const known = shape.kind === "group" ? shape.properties : {};
  const names = new Set([...Object.keys(known), ...Object.keys(members)]);
  if (!take(budget, names.size)) return null;
  return [...names].map((name) => {
    const isKnown = Object.hasOwn(known, name);
    return fieldOf(
      Object.hasOwn(members, name) ? members[name] : undefined,
      isKnown ? known[name] : undefined,
      { path: [...path, name], name, isRequired: isKnown ? shape.required.includes(name) : null },
      budget,
    );
  });
}

/** What a field that is missing, or null, gets first. */
export const blankOf = ({ schema, value }: Field): unknown => blankFor(schema, value === null ? "" : {});

/** What a new item of a list is at first: empty, or a copy of the last one if it has members and no schema. */
export function blankItemOf({ schema, value }: Field): unknown {
  const last: unknown = Array.isArray(value) ? value.at(-1) : undefined;
  const like = typeof last === "number" ? 0 : typeof last === "boolean" ? false : isObject(last) ? last : "";
  return blankFor(shapeOf(schema).items, like);
}

/** The other value if the schema asks for no kind of field. */
function blankFor(schema: unknown, other: unknown): unknown {
  const { kind, choices } = shapeOf(schema);
  const start = startOf(schema);
  if (start !== undefined) return start;
  if (kind === "choice") return choices[0];
  return kind === "text" ? "" : kind === "number" ? 0 : other;
}

function take(budget: Budget, count: number): boolean {
  if (count > budget.left) return false;
  budget.left -= count;
  return true;
}

/** All texts, all numbers, all yes or no, or all objects. */
function isUniform(items: readonly unknown[]): boolean {
  const kinds = new Set(items.map((item) => (isObject(item) ? "object" : typeof item)));
  return kinds.size <= 1 && !items.some((item) => item === null || Array.isArray(item));
}
