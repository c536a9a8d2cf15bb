/** For which parts a delegation waits, in a few words. */
import { type Awaits, isTerminal } from "../../schema/delegation.ts";
import { listedOf } from "../data/delegations.ts";
import { namesText } from "./names-text.ts";
import { count } from "./words.ts";

/**
 * `waits for 2 parts: scout, coder`, `waits for the first of 3 parts: …`. The parts are those that are not known to have
 * ended. How many must still end may be old: no event tells, so only the first is said.
 */
export function awaitsText({ children, left }: Pick<Awaits, "children" | "left">): string {
  const known = children.map((id) => listedOf(id)?.value);
  const open = known.filter((one) => one !== undefined && !isTerminal(one.state));
  const names = namesText(open.map((one) => one?.target ?? ""));
  const number = open.length > 0 ? open.length : left;
  const which = left >= number ? "" : left === 1 ? "the first of " : "some of ";
  return `waits for ${which}${count(number, "part")}${names && `: ${names}`}`;
}
