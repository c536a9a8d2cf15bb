/**
 * The named schemas of the API description, rendered from zod. Limit: a rule over several fields is described by the
 * message of its check.
 */
import * as z from "zod";
import { customAsObject } from "../../schema/custom-as-object.ts";
import * as shapes from "../../schema/index.ts";
import type { Io, Named, Schema } from "./types.ts";

export const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/**
 * The schemas of schema/ by name, and references to them. A schema that differs between requests and responses (defaults,
 * unknown fields) has a second entry, `…Input`.
 */
export class SchemaRegistry {
  readonly #registry = z.registry<{ id: string }>();
  readonly #rendered: Record<Io, Named<Schema>>;
  readonly #reached: Record<Io, ReadonlySet<string>>;
  readonly #named = new Set<string>();
  readonly #names = new Map<string, string>();

  constructor(sent: readonly z.ZodType[], answered: readonly z.ZodType[]) {
    for (const [name, shape] of Object.entries(shapes)) {
      if (!(shape instanceof z.ZodType)) continue;
      const id = capital(name.replace(/Schema$/, ""));
      this.#registry.add(shape, { id });
      this.#named.add(id);
    }
    for (const [index, shape] of [...sent, ...answered].entries()) {
      if (!this.#registry.has(shape)) this.#registry.add(shape, { id: `unnamed ${index}` });
    }
    this.#rendered = { input: render(this.#registry, "input"), output: render(this.#registry, "output") };
    this.#reached = {
      input: this.#reach("input", sent.map(this.#id)),
      output: this.#reach("output", answered.map(this.#id)),
    };
  }

  /** A reference for a named schema; the schema itself for any other. */
  show(shape: z.ZodType, io: Io): Schema {
    const id = this.#id(shape);
    return this.#named.has(id) ? { $ref: this.#refTo(id, io) } : this.#withRefs(id, io);
  }

  components(): Named<Schema> {
    const of = (io: Io) =>
      [...this.#reached[io]]
        .filter((id) => this.#named.has(id))
        .map((id) => [this.#name(id, io), this.#withRefs(id, io)] as const);
    return withAllOf(Object.fromEntries([...of("input"), ...of("output")]));
  }

  readonly #id = (shape: z.ZodType): string => this.#registry.get(shape)?.id ?? "";

  #reach(io: Io, from: readonly string[]): ReadonlySet<string> {
    const found = new Set(from);
    // The iteration also visits elements added during it.
    for (const id of found) for (const ref of refsIn(this.#rendered[io][id])) found.add(ref);
    return found;
  }

  #name(id: string, io: Io): string {
    if (io === "output" || !this.#reached.output.has(id)) return id;
    const whole = (way: Io) =>
      JSON.stringify([...this.#reach(way, [id])].map((part) => this.#rendered[way][part]));
    const name = this.#names.get(id) ?? (whole("input") === whole("output") ? id : `${id}Input`);
    this.#names.set(id, name);
    return name;
  }

  readonly #refTo = (id: string, io: Io): string => `#/components/schemas/${this.#name(id, io)}`;

  #withRefs(id: string, io: Io): Schema {
    const text = JSON.stringify(this.#rendered[io][id], (key, value: unknown) =>
      key === "$ref" && typeof value === "string" ? this.#refTo(value, io) : value,
    );
    const { $schema, $id, ...schema }: Schema = JSON.parse(text);
    return schema;
  }
}

function render(registry: z.core.$ZodRegistry<{ id: string }>, io: Io): Named<Schema> {
  const { schemas } = z.toJSONSchema(registry, {
    io,
    uri: (id) => id,
    unrepresentable: customAsObject,
    override({ zodSchema, jsonSchema }) {
      const rules = rulesOf(zodSchema);
      if (rules !== "") jsonSchema.description ??= rules;
      // Unknown fields are an error in a request, but not in a response.
      if (io === "output" && jsonSchema.additionalProperties === false)
        delete jsonSchema.additionalProperties;
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
      if (JSON.stringify(jsonSchema.propertyNames) === '{"type":"string"}') delete jsonSchema.propertyNames;
    },
  });
  return schemas;
}

/** The messages of a schema's checks, without those that do not state the rule ("not a number"). */
function rulesOf(schema: z.core.$ZodType): string {
  const rules = (schema._zod.def.checks ?? []).map((check: unknown) =>
    check instanceof z.core.$ZodCustom ? check._zod.def.error?.({ code: "custom", input: undefined }) : "",
  );
  if (schema instanceof z.ZodString) {
    const { error } = schema.safeParse("\n");
    rules.push(error?.issues.find(({ code }) => code === "invalid_format")?.message);
  }
  return rules
    .flatMap((rule) => (typeof rule === "string" && !UNINFORMATIVE.test(rule) ? `${capital(rule)}.` : []))
    .join(" ");
}

const UNINFORMATIVE = /^$|^not |^invalid |larger than/i;

function refsIn(node: unknown): string[] {
  if (typeof node !== "object" || node === null) return [];
  return Object.entries(node).flatMap(([key, value]) =>
    key === "$ref" && typeof value === "string" ? [value] : refsIn(value),
  );
}

/** Rewrites each open schema that extends another one as `allOf` that one and the additional fields. */
function withAllOf(all: Named<Schema>): Named<Schema> {
  const open = Object.entries(all).filter(
    ([, { additionalProperties, properties = {} }]) =>
      additionalProperties === undefined && Object.keys(properties).length > 2,
  );
  const contains = (whole: Schema, part: Schema): boolean =>
    whole !== part &&
    (part.required ?? []).every((name) => whole.required?.includes(name)) &&
    Object.entries(part.properties ?? {}).every(
      ([name, schema]) => JSON.stringify(whole.properties?.[name]) === JSON.stringify(schema),
    );
  const entries = open.flatMap(([name, whole]) => {
    const [base] = open
      .filter(([, part]) => contains(whole, part))
      .sort(([, a], [, b]) => sizeOf(b) - sizeOf(a));
    if (!base) return [];
    const rest = Object.entries(whole.properties ?? {}).filter(
      ([key]) => !(key in (base[1].properties ?? {})),
    );
    const required = (whole.required ?? []).filter((key) => !base[1].required?.includes(key));
    const more = { type: "object", properties: Object.fromEntries(rest), required } as const;
    return [[name, { allOf: [{ $ref: `#/components/schemas/${base[0]}` }, more] }]];
  });
  return { ...all, ...Object.fromEntries(entries) };
}

const sizeOf = ({ properties = {} }: Schema): number => Object.keys(properties).length;
