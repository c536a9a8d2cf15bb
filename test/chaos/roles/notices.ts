/**
 * Notifications: people subscribe to what happens to the council's work, some for a short time, and press the links that
 * they get: at once or late, twice, with another decision.
 */
import * as z from "zod";
import { COUNCIL, EVERYTHING } from "../setup.ts";
import type { Part } from "./part.ts";

const createdSchema = z.looseObject({ id: z.string() });

async function subscribe(part: Part, as: string, events: string): Promise<string | null> {
  const { noticeUrl, secret } = part.setup.receiver;
  const url = `${noticeUrl}?as=${encodeURIComponent(as)}`;
  const delegators = as.startsWith("caller:") ? [as] : ["caller:*"];
  const body = {
    ...{ events: events.split(","), filter: { agents: [COUNCIL], delegators }, digest_above: 100 },
    deliver: [{ kind: "webhook", url, secret }],
  };
  const made = await part.insist(
    "subscribe",
    { text: events },
    { as, path: "/v1/subscriptions", body },
    (answer) => ({
      subscription: createdSchema.parse(answer).id,
      to_ms: Date.now(),
    }),
  );
  return made.phase === "ok" ? createdSchema.parse(made.body).id : null;
}

/** To everything, once and for the whole run. */
export async function subscribing(part: Part, as: string): Promise<void> {
  if (part.setup.life > 0) return;
  await subscribe(part, as, EVERYTHING);
}

/** To questions, for a while: with the subscription its links end. */
export async function resubscribing(part: Part, as: string): Promise<void> {
  while (!part.quiet && !part.finished) {
    const subscription = await subscribe(part, as, "question");
    await part.sleep(part.random.between(2_000, 10_000));
    if (subscription === null) continue;
    const request = { as, method: "DELETE", path: `/v1/subscriptions/${subscription}` };
    await part.insist("unsubscribe", { subscription }, request);
  }
}

const noticeSchema = z.looseObject({
  ...{ id: z.string(), subscription_id: z.string(), type: z.string() },
  ...{ delegation_id: z.string().default(""), interrupt_id: z.string().default("") },
  ...{ reason: z.string().default(""), reminder: z.number().default(0), at: z.string() },
  link: z.string().nullable(),
  counts: z.record(z.string(), z.number()).default({}),
});

/** A notification arrived. */
export function noticed(part: Part, as: string, body: string, genuine: boolean): void {
  const { type, link, ...rest } = noticeSchema.parse(JSON.parse(body));
  const {
    id: notice,
    subscription_id: subscription,
    delegation_id: id,
    interrupt_id,
    reason,
    reminder,
  } = rest;
  // Of a question that somebody voids again and again, each time is told.
  const when = reason === "voided" ? rest.at : "";
  const what = [type, interrupt_id, reason, reminder, when].filter(Boolean).join(" ");
  const count = type === "digest" ? Object.values(rest.counts).reduce((sum, one) => sum + one, 0) : 1;
  part.recorder.note({ row: "notice", subscription, as, notice, type, id, what, count, genuine });
  const [, token] = link?.split("/answer#") ?? [];
  if (token !== undefined && part.random.chance(0.5))
    void press(part, { as, id, asked: interrupt_id, subscription, link: token });
}

type Linked = Readonly<Record<"as" | "id" | "asked" | "subscription" | "link", string>>;

async function press(part: Part, { as, ...linked }: Linked): Promise<void> {
  const { random } = part;
  await part.sleep(random.chance(0.7) ? random.between(0, 100) : random.between(100, 12_000));
  const send = async (decision: string) => {
    const body = { token: linked.link, decision };
    await part.call("press", { ...linked, text: as, decision }, { path: "/v1/links/answer", body });
  };
  const decision = random.chance(0.9) ? "approve" : "deny";
  const other = random.chance(0.8) ? decision : "deny";
  if (random.chance(0.5)) await send(decision);
  else await Promise.all([send(decision), send(other)]);
  if (random.chance(0.5)) await send(random.chance(0.5) ? decision : "deny");
}
