/**
 * The named schemas of the API description, rendered from zod. Limit: of the rules over several members it has those of
 * schema/rules.ts; the others are in the descriptions.
 */
import * as z from "zod";
import * as autoApprove from "../../schema/auto-approve.ts";
import * as callback from "../../schema/callback.ts";
import { customAsObject } from "../../schema/custom-as-object.ts";
import * as shapes from "../../schema/index.ts";
import * as questions from "../../schema/interrupt.ts";
import * as jsonSchema from "../../schema/json-schema/json-schema.ts";
import * as risks from "../../schema/risk.ts";
import { type Descriptions, describe, placesIn, textsIn } from "./descriptions.ts";
import { addRules } from "./rules.ts";
import type { Io, Named, Schema } from "./types.ts";

const NAMED = { ...shapes, ...autoApprove, ...callback, ...jsonSchema, ...questions, ...risks };
const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** A schema, and the place that its texts have if it has no name. */
export type Placed = readonly [place: string, schema: z.ZodType];

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

  constructor(sent: readonly Placed[], answered: readonly Placed[], texts: Descriptions) {
    for (const [name, shape] of Object.entries(NAMED)) {
      if (!(shape instanceof z.ZodType)) continue;
      const id = capital(name.replace(/Schema$/, ""));
      this.#registry.add(shape, { id });
      this.#named.add(id);
    }
    for (const [place, shape] of [...sent, ...answered]) {
      if (!this.#registry.has(shape)) this.#registry.add(shape, { id: place });
    }
    this.#rendered = {
      input: render(this.#registry, "input", texts),
      output: render(this.#registry, "output", texts),
    };
    const ids = (placed: readonly Placed[]) => placed.map(([, shape]) => this.#id(shape));
    this.#reached = {
      input: this.#reach("input", ids(sent)),
      output: this.#reach("output", ids(answered)),
    };
  }

  /** The texts that the schemas have by themselves. */
  texts(): Descriptions {
    const of = (io: Io) =>
      [...this.#reached[io]].flatMap((id) => Object.entries(textsIn(id, this.#rendered[io][id] ?? {})));
    return Object.fromEntries([...of("input"), ...of("output")]);
  }

  /** A reference for a named schema; the schema itself for any other. */
  show(shape: z.ZodType, io: Io): Schema {
    const id = this.#id(shape);
    return this.#named.has(id) ? { $ref: this.#refTo(id, io) } : this.#withRefs(id, io);
  }

  /** What the schema is, in words. */
  meaning(shape: z.ZodType, io: Io): string {
    return this.#rendered[io][this.#id(shape)]?.description ?? "";
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

  readonly #withMapping = ({ propertyName, mapping }: Discriminator, io: Io): Discriminator => ({
    propertyName,
    mapping: Object.fromEntries(Object.entries(mapping).map(([value, id]) => [value, this.#refTo(id, io)])),
  });

  #withRefs(id: string, io: Io): Schema {
    const text = JSON.stringify(this.#rendered[io][id], (key, value: unknown) => {
      if (key === "$ref" && typeof value === "string") return this.#refTo(value, io);
      return key === "discriminator" && isDiscriminator(value) ? this.#withMapping(value, io) : value;
    });
    const { $schema, $id, ...schema }: Schema = JSON.parse(text);
    // A parameter with a default is optional all the same.
    if (!id.endsWith(" query")) for (const [, node] of placesIn(id, schema)) sayDefault(node, io);
    return schema;
  }
}

interface Discriminator {
  readonly propertyName: string;
  /** The schemas by the values of the property. */
  readonly mapping: Named<string>;
}
const isDiscriminator = (value: unknown): value is Discriminator =>
  typeof value === "object" && value !== null && "propertyName" in value && "mapping" in value;

/** The member by which the choices of a schema are told apart. */
export const discriminatorOf = ({ discriminator }: Schema): string | undefined =>
  isDiscriminator(discriminator) ? discriminator.propertyName : undefined;

/**
 * Undefined if a choice has no name, or is a choice itself, which some generators refuse: then the constants alone tell
 * them apart, for the generated types, too.
 */
function discriminatorIn(
  { def }: z.ZodDiscriminatedUnion,
  registry: z.core.$ZodRegistry<{ id: string }>,
): Discriminator | undefined {
  const mapping: Record<string, string> = {};
  for (const option of def.options) {
    const id = registry.get(option)?.id;
    if (id === undefined || !(option instanceof z.ZodObject)) return undefined;
    for (const value of option._zod.propValues?.[def.discriminator] ?? []) mapping[String(value)] = id;
  }
  return { propertyName: def.discriminator, mapping };
}

function render(registry: z.core.$ZodRegistry<{ id: string }>, io: Io, texts: Descriptions): Named<Schema> {
  const { schemas } = z.toJSONSchema(registry, {
    io,
    uri: (id) => id,
    unrepresentable: customAsObject,
    override({ zodSchema, jsonSchema }) {
      if (io === "input") addRules(zodSchema, jsonSchema);
      if (zodSchema instanceof z.ZodDiscriminatedUnion) {
        const discriminator = discriminatorIn(zodSchema, registry);
        if (discriminator) jsonSchema.discriminator = discriminator;
      }
      // Unknown fields are an error in a request, but not in a response.
      if (io === "output" && jsonSchema.additionalProperties === false)
        delete jsonSchema.additionalProperties;
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
      if (JSON.stringify(jsonSchema.propertyNames) === '{"type":"string"}') delete jsonSchema.propertyNames;
    },
  });
  for (const [id, schema] of Object.entries(schemas)) describe(id, schema, texts);
  return schemas;
}

/**
 * Generators of types take a member with a `default` for one that is always there, also in a request. So a request says it
 * in words; in a response it is there.
 */
function sayDefault(schema: Schema, io: Io): void {
  const { default: value, description = "" } = schema;
  if (value === undefined) return;
  delete schema.default;
  if (io === "output" || description.includes(`Default ${JSON.stringify(value)}`)) return;
  schema.description = `${description} Default: \`${JSON.stringify(value)}\`.`.trimStart();
}

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
