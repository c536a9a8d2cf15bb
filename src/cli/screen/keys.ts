/** The keys that a person presses, as readline decodes them, with a pasted text as one key. */
import type { Key as ReadlineKey } from "node:readline";

export interface Key {
  /** `up`, `enter`, `escape`, `ctrl+u`, `shift+tab`, `paste`; for a character the character itself. */
  readonly name: string;
  /** The text that the key types; empty for control keys. */
  readonly text: string;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are not text
const CONTROL = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/g;

/** Decodes key presses. A pasted text must not press keys: its letters would be commands, and its line ends would send. */
export class KeyDecoder {
  #pasted: string | undefined;

  /** None while a paste is incomplete; two for Escape and a key right after it, which readline takes for one. */
  decode(text: string | undefined, key: ReadlineKey): readonly Key[] {
    const name = key.name ?? text ?? "";
    if (name === "paste-start") {
      this.#pasted = "";
      return [];
    }
    if (name === "paste-end") {
      const pasted = this.#pasted ?? "";
      this.#pasted = undefined;
      return [{ name: "paste", text: pasted }];
    }
    const isInterrupt = key.ctrl === true && name === "c";
    if (this.#pasted !== undefined && !isInterrupt) {
      this.#pasted += name === "return" ? "\n" : (text ?? "").replaceAll("\t", " ").replace(CONTROL, "");
      return [];
    }
    this.#pasted = undefined;
    // readline counts a lone escape as a meta key.
    if (!key.meta || name === "escape") return [toKey(name, text ?? "", key)];
    return [ESCAPE, toKey(name, key.sequence?.slice(1) ?? "", key)];
  }
}

const ESCAPE: Key = { name: "escape", text: "" };

function toKey(name: string, text: string, { ctrl, shift }: ReadlineKey): Key {
  if (name === "return" || name === "enter") return { name: "enter", text: "" };
  if (ctrl) return { name: `ctrl+${name}`, text: "" };
  if (shift && name === "tab") return { name: "shift+tab", text: "" };
  const typed = text.replace(CONTROL, "");
  return typed === "" || [...typed].length > 1 ? { name, text: "" } : { name: typed, text: typed };
}
