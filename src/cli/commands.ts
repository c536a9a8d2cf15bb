/** The commands, in the order of the help. Each is loaded when it is needed, because loading all takes longer than most run. */
import type { Command } from "commander";
import type { Cli } from "./context.ts";

type Add = (program: Command, cli: Cli) => void;

const COMMANDS: Readonly<Record<string, () => Promise<Add>>> = {
  serve: async () => (await import("./commands/serve.ts")).addServe,
  demo: async () => (await import("./demo/demo.ts")).addDemo,
  delegate: async () => (await import("./commands/delegate.ts")).addDelegate,
  get: async () => (await import("./commands/get.ts")).addGet,
  logs: async () => (await import("./commands/logs.ts")).addLogs,
  list: async () => (await import("./commands/list.ts")).addList,
  inbox: async () => (await import("./inbox/inbox.ts")).addInbox,
  results: async () => (await import("./commands/results.ts")).addResults,
  watch: async () => (await import("./commands/watch.ts")).addWatch,
  answer: async () => (await import("./commands/answer.ts")).addAnswer,
  approve: async () => (await import("./commands/approve-deny.ts")).addApprove,
  deny: async () => (await import("./commands/approve-deny.ts")).addDeny,
  message: async () => (await import("./commands/message.ts")).addMessage,
  cancel: async () => (await import("./commands/cancel.ts")).addCancel,
  redrive: async () => (await import("./commands/redrive.ts")).addRedrive,
  delete: async () => (await import("./commands/delete.ts")).addDelete,
  work: async () => (await import("./work/work.ts")).addWork,
  relay: async () => (await import("./relay/relay.ts")).addRelay,
  mcp: async () => (await import("./mcp/mcp.ts")).addMcp,
  agent: async () => (await import("./commands/agent.ts")).addAgent,
  token: async () => (await import("./commands/token.ts")).addToken,
  invite: async () => (await import("./commands/invite.ts")).addInvite,
  sessions: async () => (await import("./commands/sessions.ts")).addSessions,
  status: async () => (await import("./commands/status.ts")).addStatus,
  top: async () => (await import("./top/top.ts")).addTop,
  stats: async () => (await import("./commands/stats.ts")).addStats,
  audit: async () => (await import("./commands/audit.ts")).addAudit,
  backup: async () => (await import("./commands/backup.ts")).addBackup,
  restore: async () => (await import("./commands/restore.ts")).addRestore,
  migrate: async () => (await import("./commands/migrate.ts")).addMigrate,
  doctor: async () => (await import("./doctor/doctor.ts")).addDoctor,
  completion: async () => (await import("./completion/completion.ts")).addCompletion,
};

/** Options of all commands that have a value. */
const WITH_VALUE = ["--url", "--token"];

/** The name of the command in the arguments. Undefined for what concerns all commands, such as their help. */
export function commandIn(argv: readonly string[]): string | undefined {
  const at = argv.findIndex(
    (word, index) => !word.startsWith("-") && !WITH_VALUE.includes(argv[index - 1] ?? ""),
  );
  const name = argv[at];
  return name !== undefined && name !== "completion" && Object.hasOwn(COMMANDS, name) ? name : undefined;
}

/** What adds this command, or all of them, to the program. */
export const loadCommands = (name?: string): Promise<Add[]> =>
  Promise.all(
    Object.entries(COMMANDS).flatMap(([one, load]) => (name === undefined || one === name ? [load()] : [])),
  );
