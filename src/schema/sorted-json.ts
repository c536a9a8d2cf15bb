/** JSON text with the members of every object in the order of their names, so that equal values have equal texts. */
export function sortedJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(sortedJson).join(",")}]`;
  if (!isMembers(value)) return JSON.stringify(value) ?? "null";
  // Lists of the members' texts would take five times as long for an object with as many as a body may have.
  let text = "";
  for (const name of Object.keys(value).sort()) {
    const member = value[name];
    if (member === undefined) continue;
    text += `${text === "" ? "" : ","}${JSON.stringify(name)}:${sortedJson(member)}`;
  }
  return `{${text}}`;
}

const isMembers = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null;
