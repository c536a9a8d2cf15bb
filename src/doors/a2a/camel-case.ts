/**
 * The broker's own data as A2A spells its members: camelCase. Limit: for objects whose members all have the broker's
 * names; what agents and callers name themselves (a question's schema, an action's arguments) must not get here.
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
