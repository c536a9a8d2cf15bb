/**
 * Reads a tool's arguments as models and their clients send them: null and "" for what is absent, numbers, booleans and
 * JSON as texts, one text for a list of texts, and members that the tool does not have. It walks the tool's JSON schema;
 * the tool's own check follows. Limit: a name that may be a misspelt one is refused, because what it says would be lost.
 */
import type * as z from "zod";
import { ErrandError } from "../../../schema/errors.ts";
import { type Issue, invalidRequest, readAs } from "../../../schema/issues.ts";
import { shownName } from "../../../schema/text.ts";
import { distance, lettersOf, nearestName } from "../../../util/similar.ts";
import { parseBody } from "../../http/body.ts";
import { unknownId } from "../../unknown-id.ts";

/** The part of JSON Schema that tools have. */
export interface Schema {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema;
  readonly minLength?: number;
  readonly pattern?: string;
  readonly format?: string;
}

export interface Arguments {
  readonly args: unknown;
  /** The paths of members that the tool does not have, at most {@link MAX_IGNORED}. */
  readonly ignored: readonly string[];
  /** Members that may be misspelt. */
  readonly misspelt: readonly Issue[];
}

const MAX_IGNORED = 20;
/** A call with more unknown members is refused. */
const MAX_UNKNOWN = 100;
type Members = Readonly<Record<string, unknown>>;

export interface OtherNames {
  /** Names that the tool does not have, but that a caller may expect it to have. */
  readonly meant?: readonly string[];
  /** The names of all tools' arguments. One that is misspelt is refused; as it is, it is ignored and listed. */
  readonly ofTools?: ReadonlySet<string>;
}

export function readArguments(schema: Schema, sent: unknown, others: OtherNames = {}): Arguments {
  const reader = new Reader(others);
  const { ignored, misspelt } = reader;
  return { args: reader.read(schema, sent, ""), ignored, misspelt };
}

/** The arguments as the tool takes them. Throws `invalid_request` with everything that is wrong. */
export function checkArguments<T>(input: z.ZodType<T>, { args, misspelt }: Arguments): T {
  const checked = readAs(input, args);
  if (checked.success && misspelt.length === 0) return checked.data;
  const unknown = checked.success ? undefined : unknownId(args, checked.error);
  if (unknown) throw unknown;
  const error = checked.success ? undefined : invalidRequest(checked.error, PLACE);
  const more = error?.context.details?.issues;
  const issues = [...misspelt, ...(Array.isArray(more) ? more : [])].slice(0, MAX_ISSUES);
  const [first] = misspelt;
  const text = first ? `${first.path}: ${first.reason}` : (error?.message ?? "");
  throw new ErrandError("invalid_request", text, { details: { ...error?.context.details, issues } });
}
const PLACE = { where: "arguments", whole: "The arguments" };
const MAX_ISSUES = 50;

const isMembers = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function typeOf(value: unknown): string {
  if (Array.isArray(value)) return "array";
  return value === null ? "null" : typeof value;
}

/** Whether the schema allows the value, as far as its type and its list of values say. */
function allows(schema: Schema, value: unknown): boolean {
  if (schema.anyOf) return schema.anyOf.some((one) => allows(one, value));
  if (schema.enum && !schema.enum.includes(value)) return false;
  if (schema.const !== undefined && schema.const !== value) return false;
  const { type } = schema;
  return (
    type === undefined || type === (type === "integer" && Number.isInteger(value) ? "integer" : typeOf(value))
  );
}

/** The schema without its alternatives: those that may be meant. */
const branches = (schema: Schema): readonly Schema[] => schema.anyOf?.flatMap(branches) ?? [schema];

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?$/;

/** A schema of an object that says nothing about its members, of which there may be many. */
const takesAnything = ({ properties = {}, additionalProperties = {} }: Schema): boolean =>
  Object.keys(properties).length === 0 &&
  additionalProperties !== false &&
  Object.keys(additionalProperties).length === 0;

class Reader {
  readonly ignored: string[] = [];
  readonly misspelt: Issue[] = [];
  readonly #others: OtherNames;
  #unknown = 0;

  constructor(others: OtherNames) {
    this.#others = others;
  }

  read(schema: Schema, sent: unknown, path: string): unknown {
    const value = allows(schema, sent) ? sent : this.#converted(schema, sent, path);
    const fitting = branches(schema).find((one) => allows(one, value));
    if (fitting === undefined) return value;
    if (Array.isArray(value) && fitting.items) {
      const { items } = fitting;
      return value.map((item, at) => this.read(items, item, join(path, String(at))));
    }
    return isMembers(value) ? this.#members(fitting, value, path) : value;
  }

  #members(schema: Schema, value: Members, path: string): Members {
    const { properties = {}, required = [], additionalProperties } = schema;
    if (takesAnything(schema)) return value;
    const read: [string, unknown][] = [];
    for (const [name, member] of Object.entries(value)) {
      // The call is refused anyhow.
      if (this.#unknown > MAX_UNKNOWN) break;
      const place = join(path, name);
      const own = Object.hasOwn(properties, name) ? properties[name] : undefined;
      if (own) {
        if (!isAbsent(own, member, required.includes(name))) read.push([name, this.read(own, member, place)]);
      } else if (additionalProperties === false) {
        // A name that is given as well was not misspelt.
        const open = Object.keys(properties).filter((one) => !Object.hasOwn(value, one));
        if (member !== null) this.#ignore(name, open, place, path === "");
      } else {
        const items = typeof additionalProperties === "object" ? additionalProperties : {};
        read.push([name, this.read(items, member, place)]);
      }
    }
    return Object.fromEntries(read);
  }

  #ignore(name: string, known: readonly string[], path: string, isArgument: boolean): void {
    // Comparing a name with all others takes time.
    this.#unknown += 1;
    if (this.#unknown === MAX_UNKNOWN + 1)
      this.misspelt.push({ path, reason: `unknown field, after ${MAX_UNKNOWN} others` });
    if (this.#unknown > MAX_UNKNOWN) return;
    const reason = this.#reasonToRefuse(name, known, isArgument);
    if (reason !== undefined) this.misspelt.push({ path, reason });
    else if (this.ignored.length < MAX_IGNORED) this.ignored.push(path);
  }

  #reasonToRefuse(name: string, known: readonly string[], isArgument: boolean): string | undefined {
    const { meant = [], ofTools = NONE } = this.#others;
    const similar = nearestName(name, known);
    if (similar !== undefined) return `unknown field; did you mean ${similar}?`;
    if (nearestName(name, meant) !== undefined)
      return "unknown field, and ignoring it would change what you ask for";
    const other = isArgument ? oneLetterFrom(name, ofTools) : undefined;
    return other && `unknown field; another tool has ${other}, this one does not`;
  }

  /** The value of another type, or the sent one if it cannot be read as such. */
  #converted(schema: Schema, sent: unknown, path: string): unknown {
    if (typeof sent !== "string") return sent;
    const text = sent.trim();
    const types = new Set(branches(schema).map(({ type }) => type));
    if ((types.has("number") || types.has("integer")) && NUMBER.test(text)) return parsed(text, path);
    if (types.has("boolean") && /^(?:true|false)$/i.test(text)) return text.toLowerCase() === "true";
    if (/^[[{]/.test(text) && (types.has("object") || types.has("array"))) {
      const value = parsed(text, path);
      if (value !== undefined && allows(schema, value)) return value;
    }
    const list = branches(schema).find(({ type }) => type === "array");
    return list?.items && allows(list.items, sent) ? [sent] : sent;
  }
}

const join = (path: string, name: string): string =>
  path === "" ? shownName(name) : `${path}.${shownName(name)}`;

/** An optional member with no value; "" is one where an empty text cannot be meant. */
function isAbsent(schema: Schema, value: unknown, isRequired: boolean): boolean {
  const isAny = schema.type === undefined && schema.anyOf === undefined;
  if (value === null) return isAny || !allows(schema, null);
  if (value !== "" || isRequired) return false;
  if (isAny) return true;
  return !branches(schema).some(
    (one) =>
      allows(one, "") && !(one.minLength !== undefined && one.minLength > 0) && !one.pattern && !one.format,
  );
}

/** A short name is close to too many words. */
const LEAST_LETTERS = 5;
const NONE: ReadonlySet<string> = new Set();

/** The name of which this one is a misspelling by one letter; none if it is a known name itself. */
function oneLetterFrom(name: string, known: ReadonlySet<string>): string | undefined {
  const letters = lettersOf(name);
  let found: string | undefined;
  for (const one of known) {
    const others = lettersOf(one);
    if (others === letters) return undefined;
    if (others.length >= LEAST_LETTERS && distance(letters, others) === 1) found ??= one;
  }
  return found;
}
/** Bounded and checked as a body is; undefined for text that is not JSON. */
export function parsed(json: string, path: string): unknown {
  try {
    return parseBody(Buffer.from(json), undefined);
  } catch (error) {
    if (!(error instanceof ErrandError) || error.code === "invalid_json") return undefined;
    const found = error.context.details?.issues;
    const issues = (Array.isArray(found) ? found : []).map((issue: { path: string; reason: string }) => ({
      path: issue.path === "" ? path : `${path}.${issue.path}`,
      reason: issue.reason,
    }));
    const [first] = issues;
    throw new ErrandError(error, first ? `${first.path}: ${first.reason}` : `${path}: ${error.message}`, {
      ...error.context,
      details: { issues },
    });
  }
}
