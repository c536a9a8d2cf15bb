/** Reads a hash, or a field of it, and a mark of the same slot in one step, for util/marked-cache.ts. */
import type { Redis } from "./connect.ts";

async function together(transaction: Promise<[Error | null, unknown][] | null>): Promise<readonly unknown[]> {
  const answers = (await transaction) ?? [];
  for (const [error] of answers) if (error) throw error;
  return answers.map(([, answer]) => answer);
}

const textOrNull = (answer: unknown): string | null => (typeof answer === "string" ? answer : null);

/** The field of a hash; null if there is none. */
export async function readMarkedField(
  redis: Redis,
  hash: string,
  field: string,
  mark: string,
): Promise<{ readonly value: string | null; readonly mark: string | null }> {
  const [value, found] = await together(redis.multi().hget(hash, field).get(mark).exec());
  return { value: textOrNull(value), mark: textOrNull(found) };
}

/** All fields of a hash. */
export async function readMarkedHash(
  redis: Redis,
  hash: string,
  mark: string,
): Promise<{ readonly fields: Readonly<Record<string, string>>; readonly mark: string | null }> {
  const [fields, found] = await together(redis.multi().hgetall(hash).get(mark).exec());
  return { fields: fieldsOf(fields), mark: textOrNull(found) };
}

const fieldsOf = (answer: unknown): Record<string, string> =>
  typeof answer !== "object" || answer === null
    ? {}
    : Object.fromEntries(Object.entries(answer).map(([name, value]) => [name, String(value)]));
