/**
 * Checks the JSON Schema of a question when it is asked, so that every stored schema can be enforced. Limit: a schema of
 * bounded size, without patterns and without references to other documents.
 */
import type { Issue } from "../issues.ts";
import { LIMITS } from "../limits.ts";
import { shownName } from "../text.ts";
import { type Form, formOf, isObject, isType, TYPES, whyRefused } from "./keywords.ts";
import { escaped, toPointer } from "./pointer.ts";
import { validate } from "./validate.ts";

const MAX_ISSUES = 50;
const MAX_BYTES = LIMITS.schema_bytes.value;
const MAX_DEPTH = LIMITS.schema_depth.value;
/** If the references of a schema never end or multiply, checking one of these values takes too many steps. */
const PROBES = [null, {}, []];
/** More than the keywords of the largest schema. Fewer than a check may take, because one body may have 32 schemas. */
const PROBE_STEPS = 20_000;

/** The issues of the schema, with paths from its root; none if it can be enforced. */
export function schemaIssues(schema: unknown): readonly Issue[] {
  const issues = formIssues(schema);
  if (issues.length > 0) return issues;
  const isEndless = PROBES.some((probe) => validate(schema, probe, PROBE_STEPS).tooComplex);
  return isEndless ? [{ path: "", reason: "its references never end, or multiply too often" }] : [];
}

function formIssues(schema: unknown): readonly Issue[] {
  const bytes = new TextEncoder().encode(JSON.stringify(schema)).length;
  if (bytes > MAX_BYTES) return [{ path: "", reason: `at most ${MAX_BYTES} bytes as JSON` }];
  const checked = new SchemaCheck();
  checked.schema(schema, "", [], 0);
  checked.references();
  return checked.issues;
}

class SchemaCheck {
  readonly issues: Issue[] = [];
  /** The pointers of all subschemas: what `$ref` may refer to. */
  readonly #subschemas = new Set<string>();
  readonly #references: { readonly pointer: string; readonly path: readonly string[] }[] = [];

  schema(schema: unknown, pointer: string, path: readonly string[], depth: number): void {
    this.#subschemas.add(pointer);
    if (typeof schema === "boolean") return;
    if (!isObject(schema)) {
      this.#report(path, "must be a JSON Schema: an object, true or false");
    } else if (depth > MAX_DEPTH) {
      this.#report(path, `nested deeper than ${MAX_DEPTH} schemas`);
    } else {
      for (const [keyword, value] of Object.entries(schema)) {
        if (this.issues.length >= MAX_ISSUES) return;
        this.#keyword(keyword, value, pointer, [...path, keyword], depth);
      }
    }
  }

  references(): void {
    for (const { pointer, path } of this.#references) {
      if (!this.#subschemas.has(pointer)) this.#report(path, "refers to no subschema of this schema");
    }
  }

  #report(path: readonly string[], reason: string): void {
    if (this.issues.length < MAX_ISSUES) this.issues.push({ path: path.map(shownName).join("."), reason });
  }

  #keyword(keyword: string, value: unknown, pointer: string, path: readonly string[], depth: number): void {
    const form = formOf(keyword);
    const why = form === undefined ? whyRefused(keyword, value, depth) : whyMalformed(form, value);
    if (why !== undefined) {
      this.#report(path, why);
      return;
    }
    if (form === "reference") {
      this.#references.push({ pointer: toPointer(String(value)) ?? "", path });
      return;
    }
    const at = `${pointer}/${escaped(keyword)}`;
    if (form === "schema") this.schema(value, at, path, depth + 1);
    if ((form !== "schemas" && form !== "schema_map") || typeof value !== "object" || value === null) return;
    for (const [name, one] of Object.entries(value)) {
      this.schema(one, `${at}/${escaped(name)}`, [...path, name], depth + 1);
    }
  }
}

/** Why the keyword's value does not have its form; undefined if it does. Schemas in it are checked separately. */
function whyMalformed(form: Form, value: unknown): string | undefined {
  const [isGood, reason] = FORM_CHECKS[form];
  return isGood(value) ? undefined : reason;
}

const isNames = (value: unknown): boolean =>
  Array.isArray(value) &&
  value.every((name) => typeof name === "string") &&
  new Set(value).size === value.length;
const typesOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [value]);

const FORM_CHECKS: Readonly<Record<Form, readonly [isGood: (value: unknown) => boolean, reason: string]>> = {
  any: [() => true, ""],
  schema: [() => true, ""],
  schemas: [(value) => Array.isArray(value) && value.length > 0, "must be a list of at least one schema"],
  schema_map: [isObject, "must be an object with schemas by name"],
  // 1e400 is read as Infinity, which is stored as null.
  number: [Number.isFinite, "must be a number"],
  positive: [(value) => Number.isFinite(value) && Number(value) > 0, "must be a number greater than 0"],
  count: [(value) => Number.isInteger(value) && Number(value) >= 0, "must be a whole number, at least 0"],
  boolean: [(value) => typeof value === "boolean", "must be true or false"],
  list: [Array.isArray, "must be a list"],
  names: [isNames, "must be a list of different strings"],
  names_map: [
    (value) => isObject(value) && Object.values(value).every(isNames),
    "must be an object with lists of different strings",
  ],
  type: [
    (value) => {
      const types = typesOf(value);
      return types.length > 0 && types.every(isType) && new Set(types).size === types.length;
    },
    `must be one or several of ${TYPES.join(", ")}`,
  ],
  reference: [
    (value) => typeof value === "string" && toPointer(value) !== undefined,
    'must refer to this schema itself, like "#/$defs/name"',
  ],
};
