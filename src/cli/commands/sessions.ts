/** `errand sessions`: lists and revokes sessions of people, and creates links that sign in. */
import type { Command } from "commander";
import { Admin } from "../../client/admin.ts";
import type { ListedSession } from "../../schema/session.ts";
import { type Cli, connect, connectToRead, examples, type GlobalOptions } from "../context.ts";
import { addTableOptions, ageColumn, type Column, printRows, type TableOptions } from "../show/list-table.ts";
import { note, print, printJson } from "../show/output.ts";
import { localTime } from "../show/time.ts";

export function addSessions(program: Command, cli: Cli): void {
  const sessions = program
    .command("sessions")
    .description("list and revoke sessions of people, or print a link that signs in")
    .addHelpText("after", examples("errand sessions list", "errand sessions link"));
  addListSessions(sessions, cli);
  addRevokeSession(sessions, cli);
  addLink(sessions, cli);
}

const COLUMNS: readonly Column<ListedSession>[] = [
  { name: "id", cell: ({ id }) => id, identifier: ({ id }) => id, isWhole: true },
  { name: "principal", cell: ({ principal }) => principal },
  { name: "token", cell: ({ token_id }) => token_id ?? "operator's" },
  ageColumn("age", ({ created_at }) => created_at),
  { name: "expires", cell: ({ expires_at }) => localTime(expires_at) },
];

function addListSessions(sessions: Command, { host }: Cli): void {
  const list = sessions
    .command("list")
    .description("list your own sessions, or those of everybody (operator only)");
  addTableOptions(list, COLUMNS)
    .addHelpText("after", examples("errand sessions list", "errand sessions list --json | jq -r .principal"))
    .action(async (_options: unknown, command: Command) => {
      const options = command.optsWithGlobals<TableOptions>();
      const rows: ListedSession[] = [];
      for await (const session of new Admin(await connectToRead(host, options)).sessions()) {
        if (options.json) await printJson(host, session);
        else rows.push(session);
      }
      if (options.json) return;
      await printRows(host, rows, COLUMNS, options, "no open sessions");
    });
}

function addRevokeSession(sessions: Command, { host }: Cli): void {
  sessions
    .command("revoke")
    .description("revoke a session; its open streams and polls end within a second")
    .argument("<id>", "the session's id, from 'errand sessions list'")
    .addHelpText("after", examples("errand sessions revoke ses_5rqd0w8h1v"))
    .action(async (id: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions>();
      await new Admin(await connect(host, options)).revokeSession(id);
      await (options.json ? printJson(host, { revoked: id }) : print(host, `revoked ${id}`));
    });
}

function addLink(sessions: Command, { host }: Cli): void {
  sessions
    .command("link")
    .description("print a link to the console that signs in once, with the rights of your token")
    .addHelpText("after", examples("errand sessions link", "errand sessions link --json | jq -r .code"))
    .action(async (_options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions>();
      const created = await new Admin(await connect(host, options)).createSessionCode();
      if (options.json) return printJson(host, created);
      await print(host, created.url);
      if (host.isTty.stdout) await note(host, `the link works once, until ${created.expires_at}.`);
    });
}
