/** The identity of what an agent asks: two requests are the same if all of what a person would see is the same. */
import { createHash } from "node:crypto";

export const digestOf = (value: unknown): string =>
  createHash("sha256").update(canonical(value)).digest("hex");

/** JSON in which the order of the members does not matter. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((one) => canonical(one)).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join(",")}}`;
}
