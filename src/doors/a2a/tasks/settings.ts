/**
 * The settings of new work in the metadata of a send. They are in its member `errand`, so that the names of the client's own
 * metadata, such as `priority`, stay its own; what is not the broker's reaches the agent.
 */
import type { MessageInput } from "../../../schema/a2a.ts";
import { a2aSettingsSchema } from "../../../schema/delegate-settings.ts";
import { type DelegateRequest, delegateRequestSchema } from "../../../schema/delegation.ts";
import { ErrandError } from "../../../schema/errors.ts";
import { invalidRequest, readAs } from "../../../schema/issues.ts";
import { ERRAND_KEY } from "./task.ts";

/** Settings that may also be directly in the metadata. */
const DIRECT = ["auto_approve", "result_schema", "budget", "on_budget"] as const;
const isDirect = (name: unknown): boolean => DIRECT.some((setting) => setting === name);

const PLACE = `metadata.${ERRAND_KEY}`;

interface Begin {
  readonly delegateRequest: DelegateRequest;
  /** What an idempotency key compares. */
  readonly body: Record<string, unknown>;
}

export function toDelegateRequest(
  target: string,
  message: MessageInput,
  metadata: Record<string, unknown> | undefined,
): Begin {
  const { [ERRAND_KEY]: named = {}, ...members } = metadata ?? {};
  const entries = Object.entries(members);
  const direct = Object.fromEntries(entries.filter(([name]) => isDirect(name)));
  const { data: settings, error } = readAs(a2aSettingsSchema, named);
  if (error) throw invalidRequest(error, { where: "settings", whole: PLACE, under: PLACE });
  const twice = Object.keys(direct).find((name) => Object.hasOwn(settings, name));
  if (twice !== undefined) throw givenTwice(twice);
  const own = Object.fromEntries(entries.filter(([name]) => !isDirect(name)));
  const body = { target, message, ...(metadata && { metadata: own }), ...direct, ...settings };
  return { delegateRequest: checked(body, settings), body };
}

function checked(body: unknown, settings: object): DelegateRequest {
  const { data, error } = readAs(delegateRequestSchema, body);
  if (!error) return data;
  const names = error.issues.map(({ path: [name] }) => String(name));
  const under = names.every((name) => Object.hasOwn(settings, name))
    ? PLACE
    : names.every(isDirect)
      ? "metadata"
      : "";
  throw invalidRequest(error, { where: "params", whole: "The params", under });
}

const givenTwice = (name: string): ErrandError => {
  const path = `${PLACE}.${name}`;
  const reason = `is also in metadata.${name}; give it once`;
  return new ErrandError("invalid_request", `${path}: ${reason}`, {
    details: { issues: [{ path, reason }] },
  });
};
