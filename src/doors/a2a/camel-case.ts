/**
 * The broker's own data as A2A spells its members: camelCase. Limit: it renames all members of all objects, so it is not for
 * names that agents and callers choose (in a question's schema, or an action's arguments).
 */

const toCamel = (name: string): string =>
  name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());

/** The members of an object, and of all objects in it. */
export const camelMembers = (members: object): Record<string, unknown> =>
  Object.fromEntries(Object.entries(members).map(([name, value]) => [toCamel(name), camelValue(value)]));

function camelValue(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(camelValue);
  return typeof value === "object" && value !== null ? camelMembers(value) : value;
}
