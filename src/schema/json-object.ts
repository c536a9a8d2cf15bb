/**
 * Any JSON object, as it was sent. A record of unknown values would copy its members one by one, which takes tens of
 * milliseconds if there are as many as a body may have.
 */
import * as z from "zod";

export const jsonObjectSchema = z.custom<Record<string, unknown>>(
  (value) => typeof value === "object" && value !== null && !Array.isArray(value),
  "Invalid input: expected an object",
);
