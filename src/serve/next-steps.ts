/** The three commands to try that `errand serve` prints on a terminal once the broker is ready. */
import { type Called, ownCommand } from "./own-command.ts";

export interface Place extends Called {
  /** The variables by which the CLI finds the broker; see serve/client-access.ts. */
  readonly variables: readonly string[];
}

export function nextSteps(place: Place): string {
  const errand = commandIn(place);
  return [
    "next, paste in other terminals here: an agent (any command), a task for it, the events",
    `  ${errand} work --agent scout -- wc -w`,
    `  ${errand} delegate scout "count these words" --wait`,
    `  ${errand} watch`,
  ].join("\n");
}

/** Replaces the sign-in link where none is printed. */
export const howToSignIn = (place: Place): string =>
  `for a link that signs in to the console: ${commandIn(place)} sessions link`;

/** How a shell in the folder runs this program, for this broker. */
function commandIn(place: Place): string {
  // Those without a value are secrets, which people set themselves.
  const assignments = place.variables.filter((one) => one.includes("="));
  return [...assignments, ownCommand(place)].join(" ");
}
