/**
 * Collects the answers to a question that arrive one request at a time, and submits them when all are there. Limit: the
 * first answer to a request counts, whoever gave it. If the agent has `votes`, each person answers all requests, and the last
 * answer to a request counts. Parts are deleted when they are submitted, with the question, or by age.
 */

import * as z from "zod";
import { FIELDS_OF_LUA } from "../../lifecycle/read-fields.ts";
import { type StoredDelegation, toFields } from "../../lifecycle/stored-delegation.ts";
import type { ShardKeys } from "../../redis/keys.ts";
import { Script } from "../../redis/script.ts";
import { ErrandError } from "../../schema/errors.ts";
import { type AnswerInput, answerSchema } from "../../schema/interrupt.ts";
import { hasVoted } from "../../schema/vote-text.ts";
import type { Votes } from "../../schema/votes.ts";
import { type Principal, requireControl } from "../access/access.ts";
import type { Broker, Records } from "../broker.ts";
import { openInterrupt, toDelegation } from "../delegations/parse.ts";
import { read } from "../delegations/read.ts";
import { interruptNotOpen, notFound } from "../errors.ts";
import { type AnswerCall, type Answers, answer } from "./answer.ts";
import { requireFitting } from "./fitting.ts";
import { votesOf } from "./votes.ts";

/**
 * KEYS: the parts, the record · ARGV: HSETNX or HSET, ttl in ms, the question's id, then request_id, answer … · Returns all
 * parts, as HGETALL does. A closed question gets no parts, because they were erased with it.
 */
const keepScript = new Script(`#!lua
${FIELDS_OF_LUA}
if fields_of(KEYS[2], { 'interrupt_id' })[1] ~= ARGV[3] then return {} end
for i = 4, #ARGV, 2 do redis.call(ARGV[1], KEYS[1], ARGV[i], ARGV[i + 1]) end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return redis.call('HGETALL', KEYS[1])`);

const partsSchema = z.array(z.string());

function keysOf(broker: Pick<Broker, "shards">, id: string): ShardKeys {
  const keys = broker.shards.ofId(id);
  if (!keys) throw notFound(id);
  return keys;
}

/** The prefix of the names of the principal's parts: where people vote, each has parts of their own. */
const ownPrefix = (record: StoredDelegation, votes: Votes | null, principal: Principal): string =>
  record.get("state") === "input_required" && (votes !== null || record.get("votes_needed") !== null)
    ? `${principal.text}\n`
    : "";

/** The parts whose names have the prefix, by the rest of the name. */
const withPrefix = <T>(parts: Iterable<readonly [name: string, value: T]>, prefix: string): [string, T][] =>
  [...parts].flatMap(([name, value]) =>
    name.startsWith(prefix) ? [[name.slice(prefix.length), value] satisfies [string, T]] : [],
  );

/**
 * The ids of the requests that need no answer of the principal: it answered them, and the others are missing; or it
 * approved them all, and the approvals of others are missing.
 */
export async function answeredParts(
  broker: Records & Pick<Broker, "agents">,
  principal: Principal,
  record: StoredDelegation,
  interruptId: string,
): Promise<ReadonlySet<string>> {
  const { id } = record;
  const { interrupt } = toDelegation(record);
  if (interrupt && hasVoted(interrupt, principal.text))
    return new Set(interrupt.requests.map(({ request_id }) => request_id));
  const names = await broker.redis.hkeys(keysOf(broker, id).answerParts(id, interruptId));
  const parts = withPrefix(
    names.map((name) => [name, null] as const),
    ownPrefix(record, await votesOf(broker, record.get("target")), principal),
  );
  return new Set(parts.map(([request_id]) => request_id));
}

/** Answers some requests of a question and ignores unknown ones. Throws `interrupt_not_open` when it is not open. */
export async function answerPart(
  broker: Answers & Pick<Broker, "retentionMs">,
  principal: Principal,
  id: string,
  request: { readonly interrupt_id: string; readonly answers: Readonly<Record<string, AnswerInput>> },
  call: AnswerCall,
): Promise<StoredDelegation> {
  const record = await read(broker, principal, id);
  requireControl(principal, record, "answer its questions");
  const { interrupt_id } = request;
  const open = openInterrupt(record);
  if (open?.id !== interrupt_id) throw interruptNotOpen(id);
  const wanted = open.requests.map(({ request_id }) => request_id);
  const known = Object.entries(request.answers).filter(([request_id]) => wanted.includes(request_id));
  if (wanted.length === 1 && known.length === 1) {
    return answer(broker, principal, id, { interrupt_id, answers: Object.fromEntries(known) }, call);
  }
  if (known.length === 0) return record;
  // A part that does not fit would be kept, and would spoil every complete answer.
  requireFitting(id, open, known, false);
  const key = keysOf(broker, id).answerParts(id, interrupt_id);
  const prefix = ownPrefix(record, await votesOf(broker, record.get("target"), true), principal);
  const isOwn = prefix !== "";
  const parts = known.flatMap(([request_id, input]) => [prefix + request_id, JSON.stringify(input)]);
  const names = [key, keysOf(broker, id).delegation(id)];
  const stored = toFields(
    partsSchema.parse(
      await keepScript.run(broker.redis, names, [
        ...[isOwn ? "HSET" : "HSETNX", broker.retentionMs, interrupt_id],
        ...parts,
      ]),
    ),
  );
  if (stored.size === 0) throw interruptNotOpen(id);
  const own = withPrefix(stored, prefix);
  if (own.length < wanted.length) return record;
  const answers = Object.fromEntries(
    own.map(([request_id, json]) => [request_id, answerSchema.parse(JSON.parse(json))]),
  );
  // The parts are used up, also by an approval that does not count: the person's next answer starts over.
  const forget = () => broker.redis.hdel(key, ...own.map(([request_id]) => prefix + request_id));
  try {
    const answered = await answer(
      broker,
      principal,
      id,
      { interrupt_id, answers },
      { ...call, ...(!isOwn && { ofSeveral: true }) },
    );
    if (isOwn) await forget();
    return answered;
  } catch (error) {
    // Together the answers are too large, so every later one would fail, too: delete them and start over.
    if (error instanceof ErrandError && error.code === "payload_too_large")
      await (isOwn ? forget() : broker.redis.del(key));
    else if (isOwn && error instanceof ErrandError && error.code === "forbidden") await forget();
    throw error;
  }
}
