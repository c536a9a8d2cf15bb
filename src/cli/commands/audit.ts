/** `errand audit`: lists the audit log, newest first. Operator only. */
import { type Command, Option } from "commander";
import * as z from "zod";
import { Admin } from "../../client/admin.ts";
import { type AuditAction, type AuditEntry, auditActionSchema } from "../../schema/audit.ts";
import { changesText } from "../../schema/change-text.ts";
import { changeSchema } from "../../schema/changes.ts";
import { principalSchema } from "../../schema/values.ts";
import { type Cli, connectToRead, examples } from "../context.ts";
import { valid, wholeBetween } from "../input/arguments.ts";
import { wayText } from "../show/event-line.ts";
import { addTableOptions, ageColumn, type Column, printRows, type TableOptions } from "../show/list-table.ts";
import { oneLine, printJson } from "../show/output.ts";

interface AuditOptions extends TableOptions {
  readonly action?: AuditAction;
  readonly subject?: string;
  readonly by?: string;
  readonly limit: number;
}

const pathsSchema = z.array(z.string()).catch([]);
const valuesSchema = z.record(z.string(), z.unknown()).catch({});
const settingsSchema = z.object({
  changed: pathsSchema,
  reset: pathsSchema,
  before: valuesSchema,
  after: valuesSchema,
});

const decidedSchema = z.object({
  via: z.string(),
  decisions: z.array(
    z.object({
      action: z.string(),
      decision: z.string(),
      changes: z.array(changeSchema).default([]),
      total: z.number().optional(),
    }),
  ),
});
type Decided = z.infer<typeof decidedSchema>;

/** `approve scale, replicas 3 → 5`. */
const decisionText = ({ action, decision, changes, total }: Decided["decisions"][number]): string =>
  `${decision} ${action}${total === undefined ? "" : `, ${changesText({ changes, total })}`}`;

/** `limits.max_working: 4 → 8`, or `limits.max_working changed` if the entry lacks the values. */
function detailsText(details: AuditEntry["details"]): string {
  const { changed, reset, before, after } = settingsSchema.parse(details);
  const decided = decidedSchema.safeParse(details).data;
  if (decided) return `${decided.decisions.map(decisionText).join("; ")} ${wayText(decided.via)}`.trimEnd();
  if (changed.length + reset.length === 0) return JSON.stringify(details);
  const text = (path: string, verb: string, note = "") =>
    Object.hasOwn(after, path)
      ? `${path}: ${json(before[path])} → ${json(after[path])}${note}`
      : `${path} ${verb}`;
  return [
    ...changed.map((path) => text(path, "changed")),
    ...reset.map((path) => text(path, "reset to its default", " (default)")),
  ].join(", ");
}

const json = (value: unknown): string => oneLine(JSON.stringify(value) ?? "", 100);

const COLUMNS: readonly Column<AuditEntry>[] = [
  ageColumn("age", ({ at }) => at),
  { name: "by", cell: ({ by }) => by },
  { name: "action", cell: ({ action }) => action },
  { name: "subject", cell: ({ subject }) => subject },
  { name: "id", cell: ({ id }) => id, identifier: ({ id }) => id, shown: "named" },
  { name: "details", cell: ({ details }) => detailsText(details), isText: true },
];

export function addAudit(program: Command, { host }: Cli): void {
  const audit = program
    .command("audit")
    .description(
      "list the audit log, newest first: changes to tokens, sessions, agents and schedules, decisions about proposed actions, erasures and bulk operations (operator only)",
    )
    .addOption(new Option("--action <action>", "only this action").choices(auditActionSchema.options))
    .option("--subject <id>", "only this agent, or this id of a token, session or delegation")
    .option("--by <principal>", "only actions of this principal", valid(principalSchema))
    .option("--limit <n>", "maximum number of entries", wholeBetween(1, 100_000), 50);
  addTableOptions(audit, COLUMNS)
    .addHelpText("after", examples("errand audit", "errand audit --action token.create --json"))
    .action(async (_options: unknown, command: Command) => {
      const options = command.optsWithGlobals<AuditOptions>();
      const { action, subject, by, limit } = options;
      const admin = new Admin(await connectToRead(host, options));
      const entries: AuditEntry[] = [];
      for await (const entry of admin.audit({ action, subject, by }, { pageSize: Math.min(limit, 100) })) {
        entries.push(entry);
        if (options.json) await printJson(host, entry);
        if (entries.length === limit) break;
      }
      if (options.json) return;
      await printRows(host, entries, COLUMNS, options, "no entries");
    });
}
