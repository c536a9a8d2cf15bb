/**
 * What the API's schemas and their members mean, by place. The texts are the comments in schema/ and in rest/, which
 * scripts/generate.mjs writes into the file beside this one: no bundle but the broker's has them.
 */
import { readFileSync } from "node:fs";
import type { Named, Schema } from "./types.ts";

/** By place: `Delegation.lease.worker_id`, `Agent.skills[].name`, `Credentials|0.token`. */
export type Descriptions = Named<string>;

export const DESCRIPTIONS: Descriptions = JSON.parse(
  readFileSync(new URL("./descriptions.json", import.meta.url), "utf8"),
);

/** Adds the texts to the schema and everything in it. */
export function describe(place: string, schema: Schema, texts: Descriptions): void {
  for (const [inner, node] of placesIn(place, schema)) {
    const text = texts[inner];
    if (text !== undefined) node.description = text;
  }
}

/** The texts of the schema and everything in it. */
export function textsIn(place: string, schema: Schema): Descriptions {
  const found = placesIn(place, schema).flatMap(([inner, node]) => {
    const text = node.description ?? nullableText(node);
    return text === undefined ? [] : [[inner, text] as const];
  });
  const texts = new Map(found);
  // A nullable value is described beside the choice, not within it.
  return Object.fromEntries(
    found.filter(([inner, text]) => texts.get(inner.replace(/\|\d+$/, "")) !== text || !/\|\d+$/.test(inner)),
  );
}

const nullableText = ({ anyOf: [value, none] = [] }: Schema): string | undefined =>
  none?.type === "null" ? value?.description : undefined;

/** Each schema in a schema, itself first, with its place. */
export function placesIn(place: string, schema: Schema): [string, Schema][] {
  const { properties = {}, items, additionalProperties, anyOf = [], oneOf = [], allOf = [] } = schema;
  const found: [string, Schema][] = [[place, schema]];
  const add = (inner: string, one: Schema | boolean | undefined): void => {
    if (typeof one === "object") found.push(...placesIn(inner, one));
  };
  for (const [name, one] of Object.entries(properties)) add(`${place}.${name}`, one);
  if (!Array.isArray(items)) add(`${place}[]`, items);
  add(`${place}{}`, additionalProperties);
  for (const [index, one] of [...anyOf, ...oneOf, ...allOf].entries()) add(`${place}|${index}`, one);
  return found;
}
