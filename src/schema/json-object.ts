/**
 * Any JSON object, as it was sent. A record of unknown values would copy its members one by one, which takes tens of
 * milliseconds if there are as many as a body may have.
 */
import * as z from "zod";

/** What `phrases.ts` knows the schema by. */
export const isJsonObject = (value: unknown): boolean =>
  typeof value === "object" && value !== null && isPlain(value);

/** Any JSON object. */
export const jsonObjectSchema = z.custom<Record<string, unknown>>(isJsonObject);

/** A list, a Date or a Map is another JSON text than its members say. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
