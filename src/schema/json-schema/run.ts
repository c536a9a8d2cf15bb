/** One validation: its steps, which are counted and bounded, and the issues that it finds. */
import type { Issue } from "../issues.ts";
import { shownName } from "../text.ts";
import { isObject, type Members } from "./keywords.ts";
import { toPointer, valueAt } from "./pointer.ts";

const MAX_ISSUES = 50;
/** More than the levels of a body, because a schema may follow several references at one level of the value. */
const MAX_NESTING = 500;
/** Comparing or measuring this many characters of a string counts as one step. */
const CHARACTERS_A_STEP = 16;

export class TooComplex extends Error {}

/** Where a value is; null is the whole value. A linked list, because most paths are never shown. */
export type Place = { readonly within: Place; readonly name: string | number } | null;

function pathOf(place: Place): string {
  const names: string[] = [];
  for (let at = place; at !== null; at = at.within) names.unshift(shownName(String(at.name)));
  return names.join(".");
}

/** Checks a value by one keyword. `schema` has the other keywords beside it. */
export type Assertion = (run: Run, checked: Checked) => boolean;

export interface Checked {
  /** The keyword's own value. */
  readonly by: unknown;
  readonly schema: Members;
  readonly value: unknown;
  readonly place: Place;
}

export class Run {
  readonly issues: Issue[] = [];
  readonly #root: unknown;
  readonly #assertions: ReadonlyMap<string, Assertion>;
  readonly #targets = new Map<string, unknown>();
  readonly #maxSteps: number;
  #steps = 0;
  #nesting = 0;
  /** Above 0 while an alternative is tried, whose issues are not reported. */
  #trials = 0;

  constructor(root: unknown, assertions: ReadonlyMap<string, Assertion>, maxSteps: number) {
    this.#maxSteps = maxSteps;
    this.#root = root;
    this.#assertions = assertions;
  }

  /** How many it has spent. */
  get steps(): number {
    return this.#steps;
  }

  /** Whether the value fits the schema. Reports every issue, up to a limit, unless the value is only tried. */
  fits(schema: unknown, value: unknown, place: Place): boolean {
    this.spend(1);
    if (typeof schema === "boolean") return schema || this.refuse(place, "not allowed");
    if (!isObject(schema)) return true;
    this.#nesting += 1;
    if (this.#nesting > MAX_NESTING) throw new TooComplex();
    const fits = this.all(this.namesOf(schema), (keyword) => {
      const assertion = this.#assertions.get(keyword);
      return assertion === undefined || assertion(this, { by: schema[keyword], schema, value, place });
    });
    this.#nesting -= 1;
    return fits;
  }

  /** Whether all items are good. Continues after a bad one, for the issues of the others, unless no more are reported. */
  all<T>(items: Iterable<T>, isGood: (item: T) => boolean): boolean {
    let fits = true;
    for (const item of items) {
      this.spend(1);
      fits = isGood(item) && fits;
      if (!fits && this.isDone) break;
    }
    return fits;
  }

  namesOf(object: Members): readonly string[] {
    const names = Object.keys(object);
    this.spend(names.length);
    return names;
  }

  /** Whether the value fits the schema; reports nothing. */
  tries(schema: unknown, value: unknown): boolean {
    this.#trials += 1;
    const fits = this.fits(schema, value, null);
    this.#trials -= 1;
    return fits;
  }

  /** No further issue would be reported. */
  get isDone(): boolean {
    return this.#trials > 0 || this.issues.length >= MAX_ISSUES;
  }

  /** Reports an issue; false, as the result of an assertion. */
  refuse(place: Place, reason: string | (() => string)): false {
    if (this.isDone) return false;
    this.issues.push({ path: pathOf(place), reason: typeof reason === "string" ? reason : reason() });
    return false;
  }

  spend(steps: number): void {
    this.#steps += steps;
    if (this.#steps > this.#maxSteps) throw new TooComplex();
  }

  spendOn(text: string): void {
    this.spend(1 + text.length / CHARACTERS_A_STEP);
  }

  target(reference: string): unknown {
    if (!this.#targets.has(reference)) {
      this.#targets.set(reference, valueAt(this.#root, toPointer(reference) ?? ""));
    }
    return this.#targets.get(reference);
  }

  /** Equality of JSON values. */
  equals(one: unknown, other: unknown): boolean {
    if (typeof one === "string" && typeof other === "string" && one.length === other.length) {
      this.spendOn(one);
      return one === other;
    }
    this.spend(1);
    if (Array.isArray(one)) {
      if (!Array.isArray(other) || one.length !== other.length) return false;
      return one.every((item, at) => this.equals(item, other[at]));
    }
    if (!isObject(one)) return one === other;
    if (!isObject(other)) return false;
    const names = this.namesOf(one);
    if (names.length !== this.namesOf(other).length) return false;
    return names.every((name) => Object.hasOwn(other, name) && this.equals(one[name], other[name]));
  }

  /** JSON text that is the same for equal values. */
  textOf(value: unknown): string {
    if (typeof value === "string") this.spendOn(value);
    else this.spend(1);
    if (Array.isArray(value)) return `[${value.map((item) => this.textOf(item)).join(",")}]`;
    if (!isObject(value)) return JSON.stringify(value);
    const names = [...this.namesOf(value)].sort();
    for (const name of names) this.spendOn(name);
    return `{${names.map((name) => `${JSON.stringify(name)}:${this.textOf(value[name])}`).join(",")}}`;
  }
}
