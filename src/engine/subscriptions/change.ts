/** Creates, changes, resumes and deletes subscriptions. */
import { ECDH } from "node:crypto";
import { randomId } from "../../redis/shards.ts";
import { ErrandError } from "../../schema/errors.ts";
import type { Issue } from "../../schema/issues.ts";
import { LIMITS } from "../../schema/limits.ts";
import type { SubscriptionPatch, SubscriptionRequest } from "../../schema/subscription.ts";
import { isZone, nearestZone } from "../../util/calendar/zone.ts";
import type { Principal } from "../access/access.ts";
import type { Identity } from "../access/revocations.ts";
import type { Broker } from "../broker.ts";
import { type AuditWriter, audit } from "../upkeep/audit.ts";
import { findSubscription, noSubscription } from "./read.ts";
import { newestOf } from "./reader.ts";
import { CHANNELS, lanesOf, type Settings, type StoredSubscription } from "./stored-subscription.ts";

const ID_LENGTH = 26;

type Changes = AuditWriter &
  Pick<Broker, "agents" | "egress" | "mailer" | "shards" | "subscriptions" | "tokens">;

export async function createSubscription(
  broker: Changes,
  principal: Principal,
  identity: Identity,
  request: SubscriptionRequest,
): Promise<string> {
  requireUsable(broker, principal, request);
  const id = `sub_${randomId(ID_LENGTH)}`;
  const { store } = broker.subscriptions;
  const now = await store.now();
  // Read first: the owner is notified of every event from here on.
  const positions = await newestOf(broker);
  const made = await store.create(
    id,
    principal.text,
    now,
    {
      ...{ owner: principal.text, token: broker.tokens.holderOf(identity), settings: textOf(request) },
      ...{ created_at: now, updated_at: now, n: 0, after: positions.join(" ") },
    },
    positions,
  );
  if (!made) {
    const maximum = LIMITS.subscriptions.value;
    throw new ErrandError("limit_reached", `You have ${maximum} subscriptions, which is the limit.`, {
      details: { limit: "subscriptions", maximum },
      recovery: "Delete subscriptions that are no longer used.",
    });
  }
  await broker.subscriptions.changed();
  await audit(broker, principal, "subscription.create", id, detailsOf(request));
  return id;
}

const detailsOf = ({ events, deliver }: Settings) => ({ events, channels: deliver.map(({ kind }) => kind) });

function textOf(settings: Settings): string {
  const text = JSON.stringify(settings);
  const maximum = LIMITS.subscription_bytes.value;
  if (Buffer.byteLength(text) <= maximum) return text;
  throw new ErrandError("invalid_request", `The subscription exceeds ${maximum} bytes as JSON.`, {
    details: { issues: [{ path: "", reason: `at most ${maximum} bytes as JSON` }] },
  });
}

function requireUsable(broker: Changes, principal: Principal, settings: Settings): void {
  const { deliver, quiet, events } = settings;
  const issues: Issue[] = [];
  for (const [n, channel] of deliver.entries()) {
    if (channel.kind === "email") {
      if (!broker.mailer.isSet)
        issues.push({
          path: `deliver.${n}.kind`,
          reason: "this broker has no mail server; its operator sets ERRAND_SMTP_URL",
        });
      else if (!broker.mailer.maySend(principal.text, channel.to))
        issues.push({
          path: `deliver.${n}.to`,
          reason:
            "this broker's operator allows no mail to this address; ask for it or for its domain to be added to ERRAND_MAIL_TO, or use another channel",
        });
    } else broker.egress.requireCallable(channel.url, `deliver.${n}.url`);
    if (channel.kind === "web_push" && !isPublicKey(channel.keys.p256dh))
      issues.push({ path: `deliver.${n}.keys.p256dh`, reason: "is no public key of a browser (P-256)" });
  }
  if (quiet !== null && !isZone(quiet.time_zone))
    issues.push({
      path: "quiet.time_zone",
      reason: `no IANA time zone; the nearest is ${nearestZone(quiet.time_zone) ?? "UTC"}`,
    });
  if (quiet !== null && quiet.from === quiet.to)
    issues.push({ path: "quiet.to", reason: "must be another time than from; null for no quiet hours" });
  const mayWatch = principal.kind !== "caller";
  if (!mayWatch && events.includes("no_worker"))
    issues.push({
      path: "events",
      reason: "no_worker is for the agent itself, the operator, approvers and viewers",
    });
  const [first] = issues;
  if (first)
    throw new ErrandError("invalid_request", `${first.path}: ${first.reason}`, { details: { issues } });
}

/** Nothing can be encrypted for any other. */
function isPublicKey(text: string): boolean {
  try {
    ECDH.convertKey(text, "prime256v1", "base64url");
    return true;
  } catch {
    return false;
  }
}

/** Waiting notifications go to the channel in the same place. New channels are tried at once, also in place of a paused one. */
export async function patchSubscription(
  broker: Changes,
  principal: Principal,
  id: string,
  { name, ...patch }: SubscriptionPatch,
): Promise<void> {
  await change(broker, principal, id, "subscription.update", (before) => {
    // A changed channel could bring the operator links that answer in the owner's name.
    if (before.owner !== principal.text)
      throw new ErrandError("forbidden", `Only ${before.owner} may change the subscription.`, {
        recovery: "Delete it, or create one of your own.",
      });
    const { name: _, ...rest } = before.settings;
    const kept =
      name === null
        ? rest
        : { ...rest, ...((name ?? before.settings.name) && { name: name ?? before.settings.name }) };
    const given = Object.fromEntries(Object.entries(patch).filter(([, value]) => value !== undefined));
    const settings: Settings = { ...kept, ...given };
    requireUsable(broker, principal, settings);
    return { settings, resumes: patch.deliver !== undefined, replaces: patch.deliver !== undefined };
  });
}

/** Failing and paused channels are tried again at once. */
export const resumeSubscription = (
  broker: Changes,
  principal: Principal,
  identity: Identity,
  id: string,
): Promise<void> =>
  change(broker, principal, id, "subscription.resume", ({ settings, owner }) => ({
    settings,
    resumes: true,
    // From now on it depends on the token of this request.
    ...(owner === principal.text && { token: broker.tokens.holderOf(identity) }),
  }));

interface Changed {
  readonly settings: Settings;
  readonly resumes: boolean;
  readonly token?: string;
  /** Whether the channels change, so that links sent before answer nothing any more. */
  readonly replaces?: boolean;
}

/** Repeats the change while others change the subscription at the same time. */
async function change(
  broker: Changes,
  principal: Principal,
  id: string,
  action: "subscription.update" | "subscription.resume",
  next: (before: StoredSubscription) => Changed,
): Promise<void> {
  const { store } = broker.subscriptions;
  for (;;) {
    const read = await store.settingsOf(id);
    const before = await findSubscription(broker, principal, id);
    if (read === null) throw noSubscription(id);
    const { settings, resumes, token, replaces = false } = next(before);
    const count = settings.deliver.length;
    const fields = {
      settings: textOf(settings),
      updated_at: await store.now(),
      ...(token !== undefined && { token }),
      ...(replaces && { epoch: randomId(10) }),
    };
    const changes = {
      fields,
      removes: resumes ? CHANNELS.map((n) => `channel:${n}`) : [],
      drops: CHANNELS.slice(count).flatMap(lanesOf),
      keeps: CHANNELS.slice(0, count).flatMap(lanesOf),
    };
    if (!(await store.change(id, read, changes))) continue;
    await broker.subscriptions.changed();
    await audit(broker, principal, action, id, { owner: before.owner, ...detailsOf(settings) });
    return;
  }
}

export async function deleteSubscription(broker: Changes, principal: Principal, id: string): Promise<void> {
  // One that another version wrote cannot be read, but deleted.
  const stored = await broker.subscriptions.store.ownerOf(id);
  const isUnreadable = principal.kind === "operator" && (await broker.subscriptions.store.find(id)) === null;
  const owner = isUnreadable ? stored : (await findSubscription(broker, principal, id)).owner;
  if (owner === null || !(await broker.subscriptions.store.delete(id, owner))) throw noSubscription(id);
  await broker.subscriptions.changed();
  await audit(broker, principal, "subscription.delete", id, { owner });
}

/** Deletes all subscriptions of an owner. Safe to repeat. */
export async function deleteSubscriptionsOf(
  { subscriptions }: Pick<Broker, "subscriptions">,
  owner: string,
): Promise<void> {
  const ids = await subscriptions.store.ids(owner, 0, LIMITS.subscriptions.value);
  for (const { id } of ids) await subscriptions.store.delete(id, owner);
  if (ids.length > 0) await subscriptions.changed();
}
