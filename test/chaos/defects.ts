/**
 * Broken brokers: copies of the build with one defect each, and the rule of the checker that must find it. The broker
 * contains no code for them. A defect whose code has changed is reported.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { RuleName } from "./check/check.ts";
import type { Options } from "./options.ts";

interface Change {
  readonly file: string;
  readonly find: RegExp;
  readonly replace: string;
}

export interface Defect {
  readonly what: string;
  readonly changes: readonly Change[];
  /** Options that the run needs in addition, so that the defect shows. */
  readonly with?: Partial<Options>;
}

const LUA = "lifecycle/lua";
const defect = (
  what: string,
  file: string,
  find: RegExp,
  replace: string,
  more?: Partial<Options>,
): Defect => ({
  what,
  changes: [{ file, find, replace }],
  ...(more && { with: more }),
});

/** By the rule that finds it. */
export const DEFECTS: Record<RuleName, Defect> = {
  lost: defect(
    "deletes finished delegations after 1.5 s",
    "lifecycle/tables.js",
    /" \+ cmd\.retention_ms"/,
    '" + 1500"',
  ),
  doubled: defect(
    "ignores the idempotency key",
    "doors/rest/delegations.js",
    /idempotencyKey: request\.idempotencyKey/,
    "idempotencyKey: undefined",
  ),
  phantom: defect(
    "stores another task than it was given",
    `${LUA}/index.lua`,
    /\nfunction index\(\)\n/,
    "$&if move == 'submit' then redis.call('HSET', key, 'message', (string.gsub(redis.call('HGET', key, 'message'), 'chaos ', 'chaos x', 1))) end\n",
  ),
  unfinished: defect(
    "never ends a lease",
    "lifecycle/timers.js",
    /at: "lease_expires_at"/g,
    'at: "deadline_at"',
    { behavior: "silent" },
  ),
  uncanceled: defect(
    "answers canceled without canceling",
    "engine/delegations/cancel.js",
    /move: "cancel"/,
    'move: "follow_up"',
  ),
  gap: defect(
    "skips a number",
    `${LUA}/event.lua`,
    /record\.version = record\.version \+ 1/,
    "record.version = record.version + (record.version == 2 and 2 or 1)",
  ),
  "two-ends": defect("cancels what is finished", "lifecycle/states.js", /(cancel: \{\s+from: )LIVE/, "$1ANY"),
  "illegal-move": defect(
    "stores the events of leases under another name",
    `${LUA}/main.lua`,
    /record\.ticket, rule\.status or ''/,
    "record.ticket, rule.status == 'leased' and 'taken' or rule.status or ''",
  ),
  fork: defect(
    "shows an event differently at random",
    "events/entry.js",
    /const at = toInstant\(entry\.at\)/,
    "const at = toInstant(entry.at + (Math.random() < 0.2 ? 1 : 0))",
  ),
  missed: defect(
    "drops an event on its way to subscribers",
    "events/feed.js",
    /this\.#positions\[entry\.shard\] = entry\.id;/,
    "$& if (entry.seq === 2 && Math.random() < 0.5) return;",
  ),
  repeated: defect(
    "sends an event twice",
    "doors/http/event-stream.js",
    /if \(frame\)\s+await this\.#send\(outgoing, frame\);/,
    "for (let left = Math.random() < 0.1 ? 2 : 1; frame && left > 0; left -= 1) await this.#send(outgoing, frame);",
  ),
  reset: defect(
    "resets a reader for no reason",
    "doors/http/event-stream.js",
    /if \("reset" in event\)/,
    'if ("reset" in event || Math.random() < 0.05)',
  ),
  "foreign-read": defect(
    "shows everything to every principal",
    "engine/access/access.js",
    /if \(seesAll\(principal\)\)/,
    "if (true)",
  ),
  fence: defect(
    "grants every lease under the same fence",
    `${LUA}/lease.lua`,
    /record\.fence = record\.fence \+ 1/,
    "record.fence = math.max(record.fence, 1)",
    { behavior: "release" },
  ),
  "stale-lease": defect(
    "accepts calls on any lease",
    `${LUA}/guards.lua`,
    /record\.lease_expires_at and record\.fence == cmd\.fence/,
    "record.lease_expires_at",
    { behavior: "late", faults: [], rate: 6 },
  ),
  "two-replies": defect(
    "accepts a repeated reply as a new one",
    "engine/leases/reply.js",
    /outcome: "duplicate", record/,
    'outcome: "matched", record',
    { behavior: "twice" },
  ),
  "lost-reply": defect(
    "stores no reply",
    `${LUA}/main.lua`,
    /if not rule\.event_only then/,
    "if not rule.event_only and move ~= 'complete' then",
  ),
  "used-twice": defect(
    "hands an answer to every call that asks",
    `${LUA}/lazy/guards.lua`,
    /if used and used ~= use_of\(\) then/,
    "if false then",
    { behavior: "ask" },
  ),
  "woken-early": defect(
    "wakes work before the last of its children has ended",
    `${LUA}/choose.lua`,
    /\(record\.awaits_left or 0\) <= 1/,
    "(record.awaits_left or 0) <= 2",
    { behavior: "lead" },
  ),
  "out-of-turn": defect(
    "hands out all of a conversation at once",
    `${LUA}/lazy/line.lua`,
    /record\.behind = join_line\(\)\n {2}if/,
    "join_line()\n  if",
    { behavior: "steady" },
  ),
  miscounted: defect(
    "counts what a part has used again with each of its reports",
    `${LUA}/lazy/budget.lua`,
    /redis\.call\('HSET', spent, cmd\.child_id, cmd\.spent\)/,
    "redis.call('HSET', spent, cmd.child_id, '0 0 0')",
    { behavior: "lead" },
  ),
  overspent: defect(
    "stops trees that used half of their budget",
    `${LUA}/lazy/budget.lua`,
    /used_amount\(b, name\) > limit or/,
    "used_amount(b, name) > limit / 2 or",
    { behavior: "lead" },
  ),
  unreported: defect(
    "never reports what parts have used",
    "engine/outbound/outbox.js",
    /spends_to !== void 0 && spent !== void 0/,
    "false",
    { behavior: "lead" },
  ),
  charged: defect(
    "gives leases no grace after an outage",
    `${LUA}/lazy/grace.lua`,
    />= LIMITS\.graces then/,
    ">= 0 then",
    { faults: ["gateways-stop"], every: 2 },
  ),
  "revoked-rule": {
    what: "answers by rules that are revoked",
    changes: [
      {
        file: "engine/rules/stored-rule.js",
        find: /if \(revoked_at !== null\)/,
        replace: "if (false)",
      },
      { file: `${LUA}/lazy/rules.lua`, find: /or found\[2\] or/, replace: "or" },
    ],
    with: { behavior: "ask" },
  },
  overused: defect(
    "does not count the uses of rules",
    `${LUA}/lazy/rules.lua`,
    /rule_id \.\. ':uses', digits\(use\.count\)/,
    "rule_id .. ':uses', '0'",
    { behavior: "ask" },
  ),
  misruled: defect(
    "does not look at the numbers of an action",
    "engine/rules/match.js",
    /value >= minimum && value <= maximum \? "yes" : "no"/,
    '"yes"',
    { behavior: "ask" },
  ),
  outvoted: defect(
    "counts the votes for another answer",
    `${LUA}/lazy/votes.lua`,
    /record\.ballot_hash == cmd\.ballot and counted_votes\(\)/,
    "counted_votes()",
    { behavior: "ask" },
  ),
  untold: defect(
    "notifies nobody of every second end",
    "engine/subscriptions/happenings.js",
    /if \(!TERMINAL_EVENT_TYPES\.includes\(type\)/,
    "if (entry.seq % 2 === 0 || !TERMINAL_EVENT_TYPES.includes(type)",
  ),
  mistold: defect(
    "gives each notification another id at each try",
    "engine/subscriptions/notification.js",
    /`ntf_\$\{createHash/,
    `\`ntf_\${Math.random().toString(36).slice(2, 6)}\${createHash`,
  ),
  "dead-link": defect(
    "lets a used link answer",
    "engine/links/use.js",
    /if \(link\.used !== (?:void 0|undefined)\)/,
    "if (false)",
    { behavior: "ask", minutes: 0.4, rate: 30 },
  ),
  mismatch: defect(
    "shows something else at each gateway",
    "lifecycle/stored-delegation.js",
    /this\.get\("task_preview"\)(?=})/,
    "JSON.stringify(String(process.pid))",
  ),
  ticket: {
    what: "loses tickets, and does not look for them",
    changes: [
      {
        file: `${LUA}/ticket.lua`,
        find: /return ticket_offer\(/,
        replace: "return move == 'submit' or ticket_offer(",
      },
      { file: "lifecycle/timers.js", find: /does: "check"/, replace: "does: null" },
    ],
  },
  "delivery-forged": defect(
    "signs something else",
    "engine/outbound/callbacks.js",
    /\.sign\(id, now, body\)/,
    '.sign(id, now, body + " ")',
  ),
  undelivered: defect(
    "makes no callbacks",
    `${LUA}/pending.lua`,
    /calls_back = record\.callbacks ~= 2 and/,
    "calls_back = false and",
  ),
  "a2a-order": defect(
    "repeats events on an A2A stream",
    "doors/a2a/bindings/stream.js",
    /yield \{ json: toJson\(step\.value\) \};/,
    "{ $& $& }",
  ),
  "ag-ui-order": defect(
    "repeats events of an AG-UI run",
    "doors/agui/routes.js",
    /yield \{ json: JSON\.stringify\(event\) \};/,
    "{ $& $& }",
  ),
  "internal-error": defect(
    "fails reads at random",
    "engine/delegations/read.js",
    /if \(!record\)/,
    'if (Math.random() < 0.1) throw new TypeError("broken on purpose");\n    $&',
  ),
  leak: defect(
    "logs its operator's token",
    "serve/serve.js",
    /(errand is ready at \$\{url\})/,
    "$1 $${operatorToken}",
  ),
  died: defect(
    "ends by itself",
    "serve/serve.js",
    /say\(`errand is ready/,
    'if (dataDir.endsWith("1")) setTimeout(() => process.exit(3), 6000);\n        $&',
  ),
};

export const isDefect = (name: string): name is RuleName => Object.hasOwn(DEFECTS, name);

/** The files of the build in this directory with the defect in them. Throws if there is nothing to change. */
export function spoiled(build: string, name: RuleName): Map<string, string> {
  const files = new Map<string, string>();
  for (const { file, find, replace } of DEFECTS[name].changes) {
    const path = join(build, file);
    const text = files.get(path) ?? readFileSync(path, "utf8");
    if (!find.test(text)) throw new Error(`${file} no longer has ${find}: write the defect "${name}" again.`);
    files.set(path, text.replace(find, replace));
  }
  return files;
}
