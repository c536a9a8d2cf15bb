/**
 * How A2A reads the JSON of a request (ProtoJSON): a member's name in camelCase or snake_case, an enum by name or number,
 * an integer also as a string. A schema sees camelCase only. Limit: only the members that a schema names are renamed, so
 * what is a client's own (metadata, data) passes unchanged.
 */
import * as z from "zod";

type Members = Readonly<Record<string, unknown>>;

/** The spelling of the protobuf. */
export const toSnake = (name: string): string =>
  name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

const isPresent = (value: unknown): boolean => value !== undefined && value !== null;

function rename(value: unknown, spellings: readonly Spelling[], context: z.RefinementCtx): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  if (!spellings.some(([snake]) => Object.hasOwn(value, snake))) return value;
  const members: Record<string, unknown> = { ...value };
  for (const [snake, camel] of spellings) {
    if (!Object.hasOwn(members, snake)) continue;
    const { [snake]: given } = members;
    delete members[snake];
    // Null counts as absent.
    if (!isPresent(given) && Object.hasOwn(members, camel)) continue;
    if (isPresent(members[camel])) {
      context.addIssue({
        code: "custom",
        path: [snake],
        message: `is also sent as ${camel}; send one of them`,
      });
    }
    members[camel] = given;
  }
  return members;
}

type Spelling = readonly [snake: string, camel: string];

/** Reads the members `names` in both spellings, then `schema`. */
export function protoNames<T extends z.ZodType>(names: readonly string[], schema: T) {
  const spellings = names
    .map((name): Spelling => [toSnake(name), name])
    .filter(([snake, camel]) => snake !== camel);
  return z.preprocess((value, context) => rename(value, spellings, context), schema);
}

/** An object of these members; others pass through. */
export const protoObject = <S extends Readonly<Record<string, z.ZodType>>>(shape: S) =>
  protoNames(Object.keys(shape), z.looseObject(shape));

/** An enum by its names with their numbers. */
export function protoEnum(numbers: Readonly<Record<string, number>>, error: string) {
  const names = new Map<unknown, string>(Object.entries(numbers).map(([name, number]) => [number, name]));
  return z.preprocess((value) => names.get(value) ?? value, z.enum(Object.keys(numbers), { error }));
}

/** A number in JSON's notation. */
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

export const protoInt = (min: number, max: number) =>
  z.preprocess(
    (value) => (typeof value === "string" && NUMBER.test(value) ? Number(value) : value),
    z.int().min(min).max(max),
  );

/** The members of a body and those of its path and query, which take precedence in either spelling. */
export function withPathMembers(body: Members, path: Members): Members {
  const members: Record<string, unknown> = { ...body, ...path };
  for (const name of Object.keys(path)) {
    const snake = toSnake(name);
    // Both spellings in the body, or in the query, stay an error.
    if (snake !== name && !Object.hasOwn(path, snake) && !isPresent(body[name])) delete members[snake];
  }
  return members;
}
