/** The end of a task, for lists: tasks often differ only there, and the broker keeps their beginnings. */
import { type Message, textOf } from "../../schema/a2a.ts";

/** In characters. */
export const TASK_END = 20;
/** A longer text is not known by its end. */
const SHORT = 200;

/** Empty for a long text. */
export function taskEnd(message: Message): string {
  const text = textOf(message).trim();
  return text.length > SHORT ? "" : [...text].slice(-TASK_END).join("");
}
