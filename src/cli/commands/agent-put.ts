/** `errand agent put`: creates an agent, or changes its settings. */

import { readFile } from "node:fs/promises";
import { type Command, InvalidArgumentError, Option } from "commander";
import { Admin } from "../../client/admin.ts";
import {
  type AgentChange,
  type AgentPatch,
  type Approvals,
  agentPatchSchema,
  agentSpecSchema,
  approvalsSchema,
  backoffPatchSchema,
  limitsPatchSchema,
  type TreeReads,
  treeReadsSchema,
} from "../../schema/agent.ts";
import type { PeriodBudgets } from "../../schema/budget.ts";
import type { Credentials } from "../../schema/credentials.ts";
import { InexactNumberError, parseExact } from "../../schema/exact-numbers.ts";
import { issuesOf, readAs } from "../../schema/issues.ts";
import {
  type AgentNotify,
  agentNotifySchema,
  type ChannelKind,
  channelKindSchema,
} from "../../schema/notice.ts";
import { type RiskRule, riskRuleSchema, riskSchema } from "../../schema/risk.ts";
import { votesPatchSchema } from "../../schema/votes.ts";
import { type Cli, connect, examples, type GlobalOptions } from "../context.ts";
import { usageError } from "../failure.ts";
import type { CliHost } from "../host.ts";
import { agentName, separated, wholeBetween } from "../input/arguments.ts";
import { periodBudget } from "../input/budget.ts";
import { duration } from "../input/duration.ts";
import { readCredentials } from "../input/server-credentials.ts";
import { addVotesOptions, type VotesOptions, votesOf } from "../input/votes-options.ts";
import { agentDetails } from "../show/agent-details.ts";
import { print, printJson } from "../show/output.ts";

interface PutOptions extends GlobalOptions, VotesOptions {
  readonly pushTo?: string;
  readonly pushTokenFile?: string;
  readonly pushCredentialsFile?: string;
  readonly pushTokenEnv?: boolean;
  readonly description?: string;
  readonly acceptsFrom?: string[];
  readonly approvals?: Approvals;
  readonly treeReads?: TreeReads;
  readonly weight?: Record<string, number>;
  readonly risk?: RiskRule[];
  readonly notifyContents?: ChannelKind[];
  readonly notifyLinks?: AgentNotify["links"];
  readonly notifyOneTap?: AgentNotify["one_tap"];
  readonly lease?: number;
  readonly maxAttempts?: number;
  readonly maxWorking?: number;
  readonly maxWaiting?: number;
  readonly interruptTtl?: number;
  readonly priorityAgeing?: number;
  readonly serialBy?: "context" | "none";
  readonly sticky?: number;
  readonly budgetDay?: PeriodBudgets["day"];
  readonly budgetMonth?: PeriodBudgets["month"];
  readonly file?: string;
  readonly reset?: string[];
  readonly replace?: boolean;
}

/** Collects the rules of one option. */
function riskRule(text: string, before: RiskRule[] | undefined): RiskRule[] {
  const at = text.lastIndexOf("=");
  const rule = riskRuleSchema.safeParse({ action: text.slice(0, Math.max(0, at)), risk: text.slice(at + 1) });
  if (!rule.success) {
    throw new InvalidArgumentError(
      `A rule is the name of an action, which may end in *, and ${riskSchema.options.join(", ")}: deploy=high.`,
    );
  }
  return [...(before ?? []), rule.data];
}

/** `none` stands for an empty list. */
function channelKinds(text: string): ChannelKind[] {
  if (text === "none") return [];
  return text.split(",").map((word) => {
    const kind = channelKindSchema.options.find((known) => known === word.trim());
    if (kind) return kind;
    throw new InvalidArgumentError(
      `'${word}' is not a kind of channel; use ${channelKindSchema.options.join(", ")}, or none.`,
    );
  });
}

/** Collects the weights of one option. */
function delegatorWeight(text: string, before: Record<string, number> | undefined): Record<string, number> {
  const [, principal = "", weight = ""] = /^([^=]*)=(\d{1,9})$/.exec(text) ?? [];
  const parsed = agentSpecSchema.shape.delegator_weights.safeParse({ [principal]: Number(weight) });
  if (!parsed.success) {
    throw new InvalidArgumentError("A weight is a principal and a number of 1 to 100: caller:ci=3.");
  }
  return { ...before, ...parsed.data };
}

const ABOUT = `
The broker keeps the credentials for the A2A server, sends them only to the origin of --push-to, and never shows them
again. They stay until they are replaced or reset, or --push-to names another origin.`;

export function addPut(agent: Command, { host }: Cli): void {
  const command = agent
    .command("put")
    .description("create an agent, or change its settings; omitted settings stay as they are")
    .argument("<name>", "the agent", agentName)
    .option("--description <text>", "what the agent does")
    .option(
      "--accepts-from <principals...>",
      "who may delegate to it, for example caller:* (default: everyone)",
    )
    .addOption(
      new Option(
        "--approvals <who>",
        "any (default), or person: nothing is approved in advance; each question waits for whoever may answer it, also its delegator",
      ).choices(approvalsSchema.options),
    )
    .addOption(
      new Option(
        "--tree-reads <what>",
        "what the delegator of a root may read of work that others delegate to it: nodes (default: names and states) or contents",
      ).choices(treeReadsSchema.options),
    )
    .option(
      "--weight <weights...>",
      "how many turns of the queue a delegator gets where the others get one, 1 to 100, for example caller:ci=3",
      delegatorWeight,
    )
    .option(
      "--risk <rules...>",
      "how risky its actions are: low, medium or high, for example deploy=high fs.*=medium (operator only)",
      riskRule,
    )
    .option(
      "--notify-contents <kinds>",
      `the channels by which what it asks may leave the broker, separated by commas: ${channelKindSchema.options.join(", ")}; none (default): only that it asks (operator only)`,
      separated([...channelKindSchema.options, "none"], channelKinds),
    )
    .addOption(
      new Option(
        "--notify-links <what>",
        "what links in notifications lead to: answer (default), where whoever holds the link answers, or sign_in (operator only)",
      ).choices(agentNotifySchema.shape.links.unwrap().options),
    )
    .addOption(
      new Option(
        "--notify-one-tap <what>",
        "what a button in a notification does at once: none (default), deny, or approve and deny (operator only)",
      ).choices(agentNotifySchema.shape.one_tap.unwrap().options),
    );
  addVotesOptions(command)
    .option(
      "--budget-day <amounts>",
      "what it may use in a day (UTC) before new work is refused, for example cost=50USD,tokens=2000000 (operator only)",
      periodBudget,
    )
    .option("--budget-month <amounts>", "the same in a month", periodBudget)
    .option("--lease <duration>", "how long a lease lasts without a heartbeat", duration)
    .option("--max-attempts <n>", "maximum attempts per delegation", wholeBetween(1, 100))
    .option("--max-working <n>", "maximum number of running delegations", wholeBetween(1, 1_000_000))
    .option("--max-waiting <n>", "maximum number of queued delegations", wholeBetween(1, 10_000_000))
    .option("--interrupt-ttl <duration>", "how long its questions stay open (default: 1d)", duration)
    .option(
      "--priority-ageing <duration>",
      "after this long in its queue, work goes as if its priority were one higher, again and again (default: never)",
      duration,
    )
    .addOption(
      new Option(
        "--serial-by <what>",
        "context: of each conversation it works on one delegation at a time, in order; none (default): on any number",
      ).choices(["context", "none"]),
    )
    .option(
      "--sticky <duration>",
      "keep the next delegations of a conversation this long for the worker that had the last one, up to 1h",
      duration,
    )
    .option("--push-to <url>", "push its work to this A2A server (default: workers poll for it)")
    .option("--push-token-file <path>", "a file with the bearer token for that server; - reads stdin")
    .option("--push-token-env", "take the bearer token for that server from ERRAND_REMOTE_TOKEN")
    .option(
      "--push-credentials-file <path>",
      "a JSON file with other credentials for that server (scheme basic or headers); - reads stdin",
    )
    .option(
      "--file <path>",
      "read settings from a JSON file, where null resets a setting; options override the file",
    )
    .option(
      "--reset <settings...>",
      "reset these settings to their defaults, for example accepts_from limits.max_working",
    )
    .option("--replace", "replace all settings: omitted ones are reset to their defaults")
    .addHelpText("after", ABOUT)
    .addHelpText(
      "after",
      examples(
        'errand agent put scout --description "counts words"',
        "errand agent put builder --lease 5m --max-working 4 --accepts-from caller:ci agent:*",
        "errand agent put builder --lease 10m --reset accepts_from",
        "errand agent put chat --serial-by context --sticky 5m",
        "errand agent put builder --risk deploy=high 'fs.*=medium'",
        "errand agent put builder --votes 2 --votes-by 'approver:*' --votes-not-by-delegator",
        "errand agent put builder --weight caller:ci=3",
        "errand agent put builder --notify-contents ntfy,slack --notify-one-tap deny",
        "errand agent put scout --push-to https://a2a.example/agents/scout --push-token-file ./token",
        "errand agent put scout --reset delivery.credentials",
      ),
    )
    .action(async (name: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<PutOptions>();
      const settings = await settingsOf(host, options);
      const admin = new Admin(await connect(host, options));
      const put = await (options.replace
        ? admin.replaceAgent(name, settings)
        : admin.putAgent(name, settings));
      await (options.json
        ? printJson(host, put)
        : print(host, `${agentDetails(host, put)}\n${changesOf(put)}`));
    });
}

async function settingsOf(host: CliHost, options: PutOptions): Promise<AgentPatch> {
  const credentials = await readCredentials(
    host,
    {
      tokenFile: options.pushTokenFile,
      credentialsFile: options.pushCredentialsFile,
      tokenEnv: options.pushTokenEnv,
    },
    "--push-",
  );
  const file = options.file === undefined ? {} : await settingsIn(options.file);
  const resets = resetsOf(options.reset ?? []);
  const base = {
    ...resets,
    ...file,
    ...(resets.limits && { limits: { ...resets.limits, ...file.limits } }),
    ...(resets.backoff && { backoff: { ...resets.backoff, ...file.backoff } }),
    ...(resets.votes && file.votes !== null && { votes: { ...resets.votes, ...file.votes } }),
  };
  const notify = defined({
    contents: options.notifyContents,
    links: options.notifyLinks,
    one_tap: options.notifyOneTap,
  });
  const given = {
    description: options.description,
    delivery: deliveryOf(base.delivery, options.pushTo, credentials),
    accepts_from: options.acceptsFrom,
    approvals: options.approvals,
    tree_reads: options.treeReads,
    delegator_weights: options.weight && { ...base.delegator_weights, ...options.weight },
    risks: options.risk,
    notify: Object.keys(notify).length > 0 ? { ...base.notify, ...notify } : undefined,
    votes: votesOf(options, base.votes),
    priority_ageing_seconds: options.priorityAgeing,
    budgets:
      options.budgetDay || options.budgetMonth
        ? defined({ day: options.budgetDay, month: options.budgetMonth })
        : undefined,
    serial_by: options.serialBy === "none" ? null : options.serialBy,
    sticky_seconds: options.sticky,
    limits: {
      lease_seconds: options.lease,
      max_attempts: options.maxAttempts,
      max_working: options.maxWorking,
      max_waiting: options.maxWaiting,
      interrupt_ttl_seconds: options.interruptTtl,
    },
  };
  const limits = Object.values(given.limits).some((value) => value !== undefined) ? given.limits : undefined;
  // Settings without an option are left out; a `null` in the file stays `null`.
  return { ...base, ...defined({ ...given, limits: limits && { ...base.limits, ...defined(limits) } }) };
}

/** The delivery of the file, with the options' URL and credentials. */
function deliveryOf(
  base: AgentPatch["delivery"],
  url: string | undefined,
  credentials: Credentials | undefined,
): AgentPatch["delivery"] {
  if (url === undefined && credentials === undefined) return undefined;
  return {
    // The members of another mode must not be merged.
    ...(url !== undefined && base?.mode === "poll" ? {} : base),
    ...(url !== undefined && { mode: "push" as const, url }),
    ...(credentials && { credentials }),
  };
}

const defined = (members: object): object =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));

const GROUPS = { limits: limitsPatchSchema.shape, backoff: backoffPatchSchema.shape };
const VOTES = Object.keys(votesPatchSchema.shape);
const CREDENTIALS = "delivery.credentials";

/** `--reset accepts_from limits.max_working` as a patch. The name of a group resets all its settings. */
function resetsOf(paths: readonly string[]): AgentPatch {
  const patch: Record<string, Record<string, null> | null> = {};
  for (const path of paths) {
    if (path === CREDENTIALS && patch.delivery !== null) patch.delivery = { credentials: null };
    if (path === CREDENTIALS) continue;
    const [group = "", member] = path.split(".");
    if (group === "votes" && member !== undefined && VOTES.includes(member)) {
      // Without the setting as a whole, its members are gone, too.
      if (patch.votes !== null) patch.votes = { ...patch.votes, [member]: null };
      continue;
    }
    const members = group === "limits" || group === "backoff" ? Object.keys(GROUPS[group]) : undefined;
    const named = member === undefined ? members : [member];
    patch[group] = named
      ? { ...patch[group], ...Object.fromEntries(named.map((name) => [name, null])) }
      : null;
  }
  const parsed = agentPatchSchema.safeParse(patch);
  if (parsed.success) return parsed.data;
  throw usageError("--reset requires setting names, for example accepts_from or limits.max_working");
}

async function settingsIn(path: string): Promise<AgentPatch> {
  let value: unknown;
  try {
    value = parseExact(await readFile(path, "utf8"));
  } catch (error) {
    if (error instanceof InexactNumberError) throw usageError(`${path}: ${error.message}`);
    throw usageError(
      `${path} is not a readable JSON file (${error instanceof Error ? error.message : error})`,
    );
  }
  const parsed = readAs(agentPatchSchema, value);
  if (parsed.success) return parsed.data;
  throw usageError(
    `${path} does not contain valid agent settings: ${issuesOf(parsed.error, { whole: "the value" }).text}`,
  );
}

/** The effect of a change: a line for the changed settings, and one for those that were reset. */
function changesOf({ name, created, changed, reset }: AgentChange): string {
  if (created) return `created ${name}`;
  const lines = [
    ...(changed.length > 0 ? [`changed ${changed.join(", ")}`] : []),
    ...(reset.length > 0 ? [`reset to the default: ${reset.join(", ")}`] : []),
  ];
  return lines.length === 0 ? "nothing changed" : lines.join("\n");
}
