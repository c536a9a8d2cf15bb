/** The commands, in the order of the help. Each is loaded when it is needed, because loading all takes longer than most run. */
import type { Command } from "commander";
import { addList } from "./commands/list.ts";
import type { Cli } from "./context.ts";

type Add = (program: Command, cli: Cli) => void;

/** One file of the build: many small ones take longer to load. */
const shared = () => import("./commands/index.ts");

const COMMANDS: Readonly<Record<string, () => Promise<Add>>> = {
  serve: async () => (await shared()).addServe,
  demo: async () => (await import("./demo/demo.ts")).addDemo,
  delegate: async () => (await shared()).addDelegate,
  get: async () => (await shared()).addGet,
  logs: async () => (await shared()).addLogs,
  list: async () => addList,
  inbox: async () => (await import("./inbox/inbox.ts")).addInbox,
  results: async () => (await shared()).addResults,
  watch: async () => (await shared()).addWatch,
  answers: async () => (await shared()).addAnswers,
  answer: async () => (await shared()).addAnswer,
  approve: async () => (await shared()).addApprove,
  deny: async () => (await shared()).addDeny,
  message: async () => (await shared()).addMessage,
  cancel: async () => (await shared()).addCancel,
  redrive: async () => (await shared()).addRedrive,
  delete: async () => (await shared()).addDelete,
  schedule: async () => (await shared()).addSchedule,
  rules: async () => (await shared()).addRules,
  notify: async () => (await shared()).addNotify,
  files: async () => (await shared()).addFiles,
  work: async () => (await import("./work/work.ts")).addWork,
  relay: async () => (await import("./relay/relay.ts")).addRelay,
  mcp: async () => (await import("./mcp/mcp.ts")).addMcp,
  agent: async () => (await shared()).addAgent,
  token: async () => (await shared()).addToken,
  invite: async () => (await shared()).addInvite,
  sessions: async () => (await shared()).addSessions,
  status: async () => (await shared()).addStatus,
  top: async () => (await import("./top/top.ts")).addTop,
  stats: async () => (await shared()).addStats,
  audit: async () => (await shared()).addAudit,
  backup: async () => (await shared()).addBackup,
  restore: async () => (await shared()).addRestore,
  migrate: async () => (await shared()).addMigrate,
  doctor: async () => (await import("./doctor/doctor.ts")).addDoctor,
  completion: async () => (await import("./completion/completion.ts")).addCompletion,
};

/** The global options that take a value. */
const WITH_VALUE = ["--url", "--token"];

/** The name of the command in the arguments. Undefined for what concerns all commands, such as their help. */
export function commandNameIn(argv: readonly string[]): string | undefined {
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
