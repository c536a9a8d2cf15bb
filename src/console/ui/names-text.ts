/** The agents of several parts, in a few words. */

/** How many agents are named. */
const NAMED = 3;

/** `scout, coder (2), …`: each agent once, with how many parts it has. */
export function namesText(agents: readonly string[]): string {
  const numbers = new Map<string, number>();
  for (const name of agents) numbers.set(name, (numbers.get(name) ?? 0) + 1);
  const named = [...numbers]
    .slice(0, NAMED)
    .map(([name, times]) => (times > 1 ? `${name} (${times})` : name));
  return [...named, ...(numbers.size > NAMED ? ["…"] : [])].join(", ");
}
