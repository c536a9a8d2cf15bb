/** Which JSON is shown as a table. */

/** Of an object, and of each list in it. */
const MAX_MEMBERS = 20;

const isScalar = (value: unknown): boolean => typeof value !== "object" || value === null;
const isShortList = (value: unknown): boolean =>
  Array.isArray(value) && value.length <= MAX_MEMBERS && value.every(isScalar);

/** Whether all members are scalars or short lists of them. */
export function isFlat(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const members = Object.values(value);
  return (
    members.length > 0 &&
    members.length <= MAX_MEMBERS &&
    members.every((member) => isScalar(member) || isShortList(member))
  );
}
