/** Rules about accepted work: it exists, once, and it ends. */
import { isTerminal, stateSchema } from "../../../src/schema/delegation.ts";
import type { Facts, Violation } from "./facts.ts";

/** Accepted work exists. */
export function lost({ calls, records }: Facts): Violation[] {
  return calls("delegate").flatMap(({ result, id, end }) =>
    result === "ok" && id !== undefined && !records.has(id)
      ? [{ rule: "lost", id, what: "it was accepted and is gone", at: end }]
      : [],
  );
}

/** One idempotency key has one delegation, in all answers. */
export function doubled({ calls, records }: Facts): Violation[] {
  const first = new Map<string, { id: string; at?: number }>();
  const violations: Violation[] = [];
  const compare = (key: string, id: string, at?: number) => {
    const known = first.get(key);
    if (known === undefined) first.set(key, { id, ...(at !== undefined && { at }) });
    else if (known.id !== id) {
      // The first answer may be void; then the key was free again.
      const void_at = known.at ?? at;
      const what = `the key ${key} made ${known.id} as well`;
      violations.push({ rule: "doubled", id, what, ...(void_at !== undefined && { at: void_at }) });
    }
  };
  for (const { result, key, id, end } of calls("delegate")) {
    if (result === "ok" && key !== undefined && id !== undefined) compare(key, id, end);
  }
  for (const { key, id } of records.values()) if (key !== "") compare(key, id);
  return violations;
}

/** Every delegation was submitted, and not refused. */
export function phantom({ calls, records }: Facts): Violation[] {
  const asked = new Map<string, boolean>();
  for (const { key, result } of calls("delegate")) {
    if (key !== undefined) asked.set(key, asked.get(key) === true || result !== "fail");
  }
  return [...records.values()].flatMap(({ id, key }) => {
    const possible = asked.get(key);
    if (possible === true) return [];
    const what = possible === false ? `every submit of ${key} was refused` : `nobody submitted "${key}"`;
    return [{ rule: "phantom", id, what }];
  });
}

/** Every delegation ends. */
export function unfinished({ history }: Facts): Violation[] {
  return history.dump.records.flatMap(({ id, state }) =>
    isTerminal(stateSchema.parse(state)) ? [] : [{ rule: "unfinished", id, what: `it is still ${state}` }],
  );
}

/** An accepted cancel ended its delegation. */
export function uncanceled({ calls, records }: Facts): Violation[] {
  return calls("cancel").flatMap(({ result, id = "", end }) => {
    const record = records.get(id);
    if (result !== "ok" || record === undefined || record.state === "canceled") return [];
    return [{ rule: "uncanceled", id, what: `it was canceled and is ${record.state}`, at: end }];
  });
}
