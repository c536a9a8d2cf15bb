/** `errand audit`: the audit log, newest first. Limit: the operator's alone to read. */
import { type Command, Option } from "commander";
import { Admin } from "../client/admin.ts";
import { type AuditAction, type AuditEntry, auditActionSchema } from "../schema/audit.ts";
import { principalSchema } from "../schema/values.ts";
import { type Cli, connect, examples, type GlobalOptions, valid, wholeBetween } from "./context.ts";
import { printJson, printTable } from "./output.ts";

interface AuditOptions extends GlobalOptions {
  readonly action?: AuditAction;
  readonly subject?: string;
  readonly by?: string;
  readonly limit: number;
}

export function addAudit(program: Command, { host }: Cli): void {
  program
    .command("audit")
    .description("list who changed tokens or agents, erased delegations, or acted in bulk; newest first")
    .addOption(new Option("--action <action>", "only this action").choices(auditActionSchema.options))
    .option("--subject <id>", "only this agent, token id or delegation id")
    .option("--by <principal>", "only what this principal did", valid(principalSchema))
    .option("--limit <n>", "how many at most", wholeBetween(1, 100_000), 50)
    .addHelpText("after", examples("errand audit", "errand audit --action token.create --json"))
    .action(async (_options: unknown, command: Command) => {
      const options = command.optsWithGlobals<AuditOptions>();
      const { action, subject, by, limit } = options;
      const admin = new Admin(await connect(host, options));
      const entries: AuditEntry[] = [];
      for await (const entry of admin.audit({ action, subject, by }, { pageSize: Math.min(limit, 100) })) {
        entries.push(entry);
        if (options.json) await printJson(host, entry);
        if (entries.length === limit) break;
      }
      if (options.json) return;
      await printTable(host, [
        ["AT", "BY", "ACTION", "SUBJECT", "DETAILS"],
        ...entries.map(({ at, by, action, subject, details }) => [
          at,
          by,
          action,
          subject,
          JSON.stringify(details),
        ]),
      ]);
    });
}
