/** What a delegation asks, in words for people, and how to answer it. Limit: it shows; it never answers. */
import { textOf } from "../schema/a2a.ts";
import type { Delegation, Interrupt } from "../schema/delegation.ts";
import { oneLine } from "./output.ts";

type Request = Interrupt["requests"][number];

/** All that is asked, on one line. */
export function questionText({ requests }: Interrupt): string {
  return requests.map(({ message }) => textOf(message)).join(" / ");
}

/** An option may be any JSON. */
export function optionText(option: unknown): string {
  return oneLine(typeof option === "string" ? option : JSON.stringify(option));
}

/** One line a request: `host: Which host? (a | b)`. */
export function requestLine({ request_id, message, options = [] }: Request, isOne: boolean): string {
  const text = oneLine(textOf(message), 200);
  const choice = options.length > 0 ? ` (${oneLine(options.map(optionText).join(" | "), 200)})` : "";
  return (isOne ? "" : `${oneLine(request_id, 64)}: `) + text + choice;
}

/** The commands that answer it, as a part of a sentence. */
export function howToAnswer({ id, interrupt }: Pick<Delegation, "id" | "interrupt">): string {
  if (interrupt !== null && interrupt.requests.length > 1) {
    return `'errand answer ${id}' on a terminal, or 'errand answer ${id} --answers <path>'`;
  }
  return `'errand answer ${id} "…"', 'errand approve ${id}' or 'errand deny ${id}'`;
}
