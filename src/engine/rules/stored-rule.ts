/** A rule as it is stored: fields of the hash of its agent and scope; `rules.lua` has the layout. */
import * as z from "zod";
import { ruleSchema } from "../../schema/rule.ts";
import { parseJson } from "../../util/parse-json.ts";
import type { Principal } from "../access/access.ts";

/** What never changes. */
const docSchema = ruleSchema
  .pick({ agent: true, action: true, arguments: true, only_these_arguments: true, decision: true, by: true })
  .extend({
    note: z.string().optional(),
    /** Identifies the token that it was created with (`Tokens.holderOf`). */
    token: z.string(),
    /** Hash of the body that created it. */
    body: z.string(),
  });

export interface StoredRule {
  readonly id: string;
  readonly scope: string;
  readonly doc: z.output<typeof docSchema>;
  readonly created_at: number;
  readonly expires_at: number | null;
  readonly max_uses: number | null;
  readonly uses: number;
  /** Lines of the newest uses, newest first: ms, delegation, question. */
  readonly last: string;
  readonly revoked_at: number | null;
}

/** The scope of those who may answer all questions of an agent. A delegator's scope is the delegator. */
export const ALL = "all";

/** Null for a principal that answers no questions. */
export function scopeOf({ kind, text }: Principal): string | null {
  if (kind === "viewer") return null;
  return kind === "operator" || kind === "approver" ? ALL : text;
}

const numberOf = (text: string | undefined): number | null => (text === undefined ? null : Number(text));

/** The rules in the fields of a hash, oldest first. One that cannot be read, because a later version wrote it, is left out. */
export function toRules(scope: string, fields: ReadonlyMap<string, string>): StoredRule[] {
  const rules: StoredRule[] = [];
  for (const [id, text] of fields) {
    if (!id.startsWith("rul_") || id.includes(":")) continue;
    const doc = docSchema.safeParse(parseJson(text)).data;
    if (!doc) continue;
    const of = (name: string) => fields.get(`${id}:${name}`);
    rules.push({
      ...{ id, scope, doc, created_at: Number(of("at")), expires_at: numberOf(of("until")) },
      ...{ max_uses: numberOf(of("max")), uses: Number(of("uses") ?? 0), last: of("last") ?? "" },
      revoked_at: numberOf(of("revoked")),
    });
  }
  return rules.sort((a, b) => a.created_at - b.created_at || (a.id < b.id ? -1 : 1));
}

export type RuleState = "active" | "used_up" | "expired" | "revoked";

export function stateOf({ revoked_at, max_uses, uses, expires_at }: StoredRule, now: number): RuleState {
  if (revoked_at !== null) return "revoked";
  if (max_uses !== null && uses >= max_uses) return "used_up";
  return expires_at !== null && expires_at <= now ? "expired" : "active";
}
