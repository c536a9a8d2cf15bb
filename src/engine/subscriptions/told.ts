/**
 * Who was notified of a question, and how, to explain why nobody answered it. It is kept as long as delegations. Limit: the
 * newest 20 notes of a delegation; those of earlier questions, which were answered, go first.
 */
import * as z from "zod";
import type { Redis } from "../../redis/connect.ts";
import { keys } from "../../redis/keys.ts";
import { toldSchema } from "../../schema/notice.ts";
import { MOST_TOLD } from "../../schema/told-text.ts";
import { parseJson } from "../../util/parse-json.ts";

type Told = z.output<typeof toldSchema>;

const notedSchema = toldSchema.extend({ question: z.string() });

export async function noteTold(
  redis: Redis,
  { delegation, question }: { readonly delegation: string; readonly question: string },
  told: Told,
  /** `isReminder`: noted only if this person and channel are not noted yet, so that many reminders push out nobody else. */
  { forMs, isReminder }: { readonly forMs: number; readonly isReminder: boolean },
): Promise<void> {
  const isSame = ({ person, channel }: Told) => person === told.person && channel === told.channel;
  if (isReminder && (await readTold(redis, delegation, question)).some(isSame)) return;
  const key = keys.told(delegation);
  await redis.lpush(key, JSON.stringify({ ...told, question }));
  await redis.ltrim(key, 0, MOST_TOLD - 1);
  await redis.pexpire(key, Math.ceil(forMs));
}

export async function readTold(redis: Redis, delegation: string, question: string): Promise<Told[]> {
  const texts = await redis.lrange(keys.told(delegation), 0, MOST_TOLD - 1);
  return z
    .array(notedSchema)
    .parse(texts.map(parseJson))
    .flatMap(({ question: of, ...told }) => (of === question ? [told] : []));
}

/** The delegation is erased. */
export async function forgetTold(redis: Redis, delegation: string): Promise<void> {
  await redis.del(keys.told(delegation));
}
