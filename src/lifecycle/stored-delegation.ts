/**
 * A delegation as the gateways read it from its record: its fields (fields.ts lists them), its history, and its JSON.
 * Stored JSON is copied into that JSON without parsing it. Limit: it trusts what the script wrote.
 */
import * as z from "zod";
import type { Redis } from "../redis/connect.ts";
import { Script } from "../redis/script.ts";
import type { Shards } from "../redis/shards.ts";
import { artifactSchema } from "../schema/a2a.ts";
import { isTerminal } from "../schema/delegation.ts";
import { toInstant } from "../schema/values.ts";
import {
  PACKED,
  READ_NAMES,
  READERS,
  type Readable,
  type ReadFields,
  type ReadName,
  type Value,
} from "./fields.ts";
import { budgetOf } from "./stored-budget.ts";
import { usageJson } from "./stored-usage.ts";

/** The stored fields that the gateways read, and values derived from them. */
export interface StoredDelegation extends Readable<ReadName> {
  readonly id: string;
  readonly finished: boolean;
  /** JSON texts of messages, oldest first; an element may hold several, comma separated. */
  readonly history: readonly string[];
  /** The delegation as it is shown, as JSON text. */
  readonly json: string;
  /** Returns the same record with another history. */
  withHistory(history: readonly string[]): StoredDelegation;
  /** Returns the same record without what is approved in advance. */
  withoutAutoApprove(): StoredDelegation;
}

/** A record that was read from Redis, with the events that only callbacks need. */
export interface ReadDelegation extends StoredDelegation {
  /** The events to call back with: sequence number to stream id. */
  readonly notify: ReadonlyMap<number, string>;
}

const INSTANT = (value: Value): string => (value === "" ? "null" : `"${toInstant(Number(value))}"`);
const TEXT = (value: Value): string => (value === "" ? "null" : JSON.stringify(value));

/** The parts of a record that are stored outside its hash. */
export interface Lists {
  /** Chunks of comma separated JSON. */
  readonly history: readonly string[];
  /** The hash of artifacts; lua/lazy/artifacts.lua has its layout. */
  readonly artifacts: ReadonlyMap<string, string>;
}

/** The artifacts in order, each joined from its chunks. A chunk's name is `<place of the artifact>:<number>`. */
function artifactsJson(stored: ReadonlyMap<string, string>): string {
  const places: string[][] = [];
  for (const [name, json] of stored) {
    const [, place, number] = /^(\d+):(\d+)$/.exec(name)?.map(Number) ?? [];
    if (place === undefined || number === undefined) continue;
    places[place] ??= [];
    places[place][number] = json;
  }
  return `[${places.flatMap((chunks) => wholeJson(chunks.flat())).join(",")}]`;
}

function wholeJson(chunks: readonly string[]): string {
  if (chunks.length === 1) return chunks[0] ?? "";
  const artifacts = z.array(artifactSchema).parse(JSON.parse(`[${chunks.join(",")}]`));
  const parts = artifacts.flatMap((artifact) => artifact.parts);
  const members: Record<string, unknown> = Object.assign({}, ...artifacts);
  return JSON.stringify({ ...members, parts });
}

const PLACE: ReadonlyMap<string, number> = new Map(READ_NAMES.map((name, place) => [name, place]));

class Stored implements StoredDelegation {
  readonly id: string;
  readonly #values: readonly Value[];
  readonly #lists: Lists;
  #json: string | undefined;

  constructor(id: string, values: readonly Value[], lists: Lists) {
    this.id = id;
    this.#values = values;
    this.#lists = lists;
  }

  get<K extends ReadName>(name: K): ReadFields[K] {
    return READERS[name].read(this.#value(name));
  }

  get finished(): boolean {
    return isTerminal(this.get("state"));
  }
  get history(): readonly string[] {
    return this.#lists.history;
  }
  get json(): string {
    this.#json ??= this.#toJson();
    return this.#json;
  }

  /** The stored value; empty when the field is absent. */
  #value(name: ReadName): Value {
    return this.#values[PLACE.get(name) ?? -1] ?? "";
  }

  withHistory(history: readonly string[]): StoredDelegation {
    return new Stored(this.id, this.#values, { ...this.#lists, history });
  }

  withoutAutoApprove(): StoredDelegation {
    const values = this.#values.map((value, place) => (place === PLACE.get("auto_approve") ? "" : value));
    return new Stored(this.id, values, this.#lists);
  }

  #toJson(): string {
    const text = (name: ReadName) => TEXT(this.#value(name));
    const instant = (name: ReadName) => INSTANT(this.#value(name));
    const optional = (name: "auto_approve" | "result_schema") => {
      const value = this.get(name);
      return value === null ? "" : `"${name}":${value},`;
    };
    return (
      `{"id":"${this.id}","state":"${this.get("state")}","version":${this.get("version")},` +
      `"target":${text("target")},"delegator":${text("delegator")},` +
      `"context_id":${text("context_id")},"parent_id":${text("parent_id")},` +
      `${this.get("keeps_children") === 1 ? '"children_on_failure":"keep",' : ""}` +
      `"redrive_of":${text("redrive_of")},"redriven_as":${text("redriven_as")},"priority":${this.get("priority")},${this.#agedJson()}` +
      `"metadata":${this.get("metadata")},${optional("auto_approve")}` +
      `${optional("result_schema")}"task_preview":${this.get("task_preview")},` +
      `"message":${this.get("message")},"progress":${this.get("progress")},` +
      `"interrupt":${this.#interruptJson()},${this.#awaitsJson()}${this.#behindJson()}"artifacts":${artifactsJson(this.#lists.artifacts)},` +
      `"reply":${this.get("reply")},"error":${this.get("error")},` +
      `"attempt":${this.get("attempt")},"max_attempts":${this.get("max_attempts")},` +
      `"lease":${this.#leaseJson()},${this.#usageJson()}${this.#budgetJson()}"history":[${this.#lists.history.join(",")}],` +
      `"created_at":${instant("created_at")},"updated_at":${instant("updated_at")},` +
      `"not_before_at":${instant("not_before_at")},"deadline_at":${instant("deadline_at")},` +
      `"finished_at":${instant("finished_at")}}`
    );
  }

  #interruptJson(): string {
    const interrupt = this.get("interrupt");
    if (interrupt === null) return "null";
    const raised = INSTANT(this.#value("interrupt_raised_at"));
    const expires = INSTANT(this.#value("interrupt_expires_at"));
    return `{"raised_at":${raised},"expires_at":${expires},${this.#votesJson()}${interrupt.slice(1)}`;
  }

  #votesJson(): string {
    const needed = this.get("votes_needed");
    if (needed === null) return "";
    const ballot = this.get("ballot");
    const answers = ballot === null ? "" : `,"answers":${ballot}`;
    return `"votes":{"needed":${needed},"given":${this.get("votes") ?? "[]"}${answers}},`;
  }

  #awaitsJson(): string {
    if (this.get("state") !== "awaiting_children") return "";
    const expires = INSTANT(this.#value("awaits_until"));
    return `"awaits":{"children":${this.get("awaits")},"left":${this.get("awaits_left")},"expires_at":${expires}},`;
  }

  #agedJson(): string {
    const aged = this.get("aged");
    const waits = this.get("state") === "submitted";
    return waits && aged > 0 ? `"effective_priority":${this.get("priority") + aged},` : "";
  }

  #behindJson(): string {
    const behind = this.get("behind");
    return behind === null ? "" : `"behind":"${behind}",`;
  }

  #usageJson(): string {
    const usage = this.get("usage");
    const used = this.get("used");
    if (usage === null || used === null) return "";
    return `"usage":${usageJson(usage, used, this.get("fence"))},`;
  }

  #budgetJson(): string {
    const budget = this.get("budget");
    return budget === null ? "" : `"budget":${JSON.stringify(budgetOf(budget, this.get("stop_at")))},`;
  }

  #leaseJson(): string {
    if (this.get("lease_expires_at") === null) return "null";
    const worker = JSON.stringify(this.get("worker_id"));
    const granted = INSTANT(this.#value("lease_granted_at"));
    return `{"worker_id":${worker},"granted_at":${granted},"expires_at":${INSTANT(this.#value("lease_expires_at"))}}`;
  }
}

/** A hash, from the flat array that a script returns. */
export function toFields<T extends Value>(flat: readonly T[]): Map<string, T> {
  const fields = new Map<string, T>();
  for (const [at, value] of flat.entries()) if (at % 2 === 1) fields.set(`${flat[at - 1]}`, value);
  return fields;
}

/** A record from its values: the fields {@link READ_NAMES}, in their order. */
export const storedFrom = (id: string, values: readonly Value[], lists: Lists): StoredDelegation =>
  new Stored(id, values, lists);

/**
 * KEYS: the record, its history, its artifacts · Returns the fields as names and values, the history and
 * the artifacts. One script, so that all three are of the same moment.
 */
const readScript = new Script(`#!lua flags=no-writes
local flat, fields = redis.call('HGETALL', KEYS[1]), {}
local function add(name, value) fields[#fields + 1], fields[#fields + 2] = name, value end
for i = 1, #flat, 2 do
  if flat[i] ~= '${PACKED}' then add(flat[i], flat[i + 1]) end
  for name, value in pairs(flat[i] == '${PACKED}' and cmsgpack.unpack(flat[i + 1]) or {}) do add(name, value) end
end
return { fields, redis.call('LRANGE', KEYS[2], 0, -1), redis.call('HGETALL', KEYS[3]) }`);

const textsSchema = z.array(z.string());
const readSchema = z.tuple([z.array(z.union([z.string(), z.number()])), textsSchema, textsSchema]);

/** Reads a record; null when there is none (unknown, or deleted after the retention time). */
export async function readRecord(redis: Redis, shards: Shards, id: string): Promise<ReadDelegation | null> {
  const keys = shards.ofId(id);
  if (!keys) return null;
  const names = [keys.delegation(id), keys.history(id), keys.artifacts(id)];
  const [flat, history, artifacts] = readSchema.parse(await readScript.run(redis, names, []));
  const fields = toFields(flat);
  // A hash without a state is a mark (MARKS in fields.ts).
  if (!fields.has("state")) return null;
  const values = READ_NAMES.map((name) => fields.get(name) ?? "");
  const stored = new Stored(id, values, { history, artifacts: toFields(artifacts) });
  const notify = [...fields].filter(([name]) => name.startsWith("notify:"));
  return Object.assign(stored, {
    notify: new Map(notify.map(([name, event_id]) => [Number(name.slice("notify:".length)), `${event_id}`])),
  });
}
