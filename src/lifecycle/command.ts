/** The commands of the script, and how they are encoded; lua/main.lua describes the arguments. */
import type { ShardKeys } from "../redis/keys.ts";
import type { Artifact } from "../schema/a2a.ts";
import { wellFormedJson } from "../schema/text.ts";
import type { UsageReport } from "../schema/usage.ts";
import type { OwnField } from "./fields.ts";
import { MOVE_NAMES, MOVES, type Move, type MoveName } from "./states.ts";

/** Milliseconds added to Redis' clock; 0 in production, changed by tests. */
export interface Clock {
  readonly offset_ms: number;
}

/** A chunk of an artifact: it replaces the artifact with its id, or is appended to it. */
export interface Chunk {
  readonly artifact: Artifact;
  readonly append?: boolean | undefined;
}

export interface Command {
  /**
   * A move of the table; or `due`: the move whose timer has passed, if any; or `erase`: deletes a finished record and
   * its events.
   */
  readonly move: MoveName | "due" | "erase";
  readonly id: string;
  /** The move's parameters: numbers, booleans, short strings and lists of them; see lua/main.lua. */
  readonly params?: Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;
  /** Members for the event: JSON text by name. */
  readonly event?: Readonly<Record<string, string | undefined>>;
  /** JSON messages for the history. */
  readonly history?: readonly string[];
  readonly artifacts?: readonly Chunk[];
  /** The event's member that shows the artifacts; absent: the event shows none. */
  readonly shows?: "artifact" | "artifacts" | undefined;
  /** Bytes of the bodies among `fields`; those of messages and artifacts are counted separately. */
  readonly bytes?: number;
  /** What the holder's lease has used so far. */
  readonly usage?: UsageReport | undefined;
  /** The record's own fields to set, by name. */
  readonly fields?: Readonly<Partial<Record<OwnField, string | undefined>>>;
  /** Return the record as it is after the move (or the refusal). */
  readonly read?: boolean;
}

/** The poll that takes a ticket, and the terms of its lease. */
export interface Taker {
  readonly agent: string;
  /** Identifies this lease if the answer is lost. */
  readonly nonce: string;
  readonly worker_id: string;
  /** Overrides the agent's setting. */
  readonly lease_ms?: number | undefined;
  readonly confirm_ms?: number | undefined;
}

/** The parameters that every command has. */
export interface CommonParams {
  readonly clock: Clock;
  /** How long finished work is kept. */
  readonly retention_ms: number;
}

type Head = Record<string, unknown>;
type Texts = Readonly<Record<string, string | undefined>>;

/** The command of a taker: its delegation is that of the first ticket. */
export const TAKE = { move: "lease", read: true } as const;

/** Moves that may queue the work after a delay with jitter: `fail` may become a retry, and `due` any move. */
const JITTERED: ReadonlySet<string> = new Set([
  ...MOVE_NAMES.filter((name) => {
    const { delay }: Move = MOVES[name];
    return delay === "backoff" || delay === "release" || delay === "handoff";
  }),
  "fail",
  "due",
]);

/** JSON members, without braces. A member whose text is also a field's is left out: the script shows the field. */
function members({ event, fields: own = {} }: Pick<Command, "event" | "fields">): string {
  const fields: Texts = own;
  let text = "";
  for (const name in event) {
    const json = event[name];
    if (json !== undefined && json !== fields[name]) text += `${text === "" ? "" : ","}"${name}":${json}`;
  }
  return text;
}

export function encode(command: Command, { base }: Pick<ShardKeys, "base">, common: CommonParams): string[] {
  const { params, move, id, bytes, artifacts: chunks, history, shows, usage } = command;
  // V8 11 takes ten times as long for a literal that begins with a spread and goes on with names: about 1 µs a name.
  const head: Head = { move, id, base, bytes, ...params };
  if (chunks && chunks.length > 0) {
    head.chunks = chunks.map(({ artifact, append = false }) => ({ id: artifact.artifactId, append }));
    head.shows = shows;
  }
  if (usage) head.usage = usage;
  const args = ["", members(command), history?.join(",") ?? ""];
  const others: string[] = [];
  const fields: Texts = command.fields ?? {};
  for (const name in fields) {
    const value = fields[name];
    if (value !== undefined) (command.event?.[name] === value ? args : others).push(name, value);
  }
  head.in_event = (args.length - 3) / 2;
  args.push(...others);
  head.fields = (args.length - 3) / 2;
  args[0] = encodeHead(command, head, common);
  for (const { artifact } of chunks ?? []) args.push(JSON.stringify(artifact));
  return args;
}

export function encodeTake(taker: Taker, { base }: Pick<ShardKeys, "base">, common: CommonParams): string {
  const { agent, ...params } = taker;
  return encodeHead(
    TAKE,
    { move: TAKE.move, take: true, target: agent, base, fields: 0, in_event: 0, ...params },
    common,
  );
}

function encodeHead({ move, read = false }: Omit<Command, "id">, head: Head, common: CommonParams): string {
  head.clock = common.clock.offset_ms;
  head.retention_ms = common.retention_ms;
  if (JITTERED.has(move)) head.random = Math.random();
  head.read = read;
  // Replaces lone surrogates, because the script's JSON decoder fails on them.
  return wellFormedJson(JSON.stringify(head));
}
