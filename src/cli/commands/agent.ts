/** `errand agent`: lists, shows, configures, pauses and deletes agents. */
import type { Command } from "commander";
import { Admin } from "../../client/admin.ts";
import { timeLeft } from "../../client/words.ts";
import type { Agent, Worker } from "../../schema/agent.ts";
import { type Cli, connect, connectToRead, examples, type GlobalOptions } from "../context.ts";
import { agentName } from "../input/arguments.ts";
import { agentDetails, presenceText } from "../show/agent-details.ts";
import {
  addFieldOptions,
  addTableOptions,
  ageColumn,
  type Column,
  printRows,
  type TableOptions,
} from "../show/list-table.ts";
import { oneLine, type Painter, print, printJson } from "../show/output.ts";
import { addPut } from "./agent-put.ts";

export function addAgent(program: Command, cli: Cli): void {
  const agent = program
    .command("agent")
    .description("list, show, configure, pause and delete agents")
    .addHelpText(
      "after",
      examples("errand agent list", 'errand agent put scout --description "counts words"'),
    );
  addList(agent, cli);
  addGetAgent(agent, cli);
  addWorkers(agent, cli);
  addPut(agent, cli);
  addPausing(
    agent,
    cli,
    "pause",
    "stop giving work to an agent; running work continues, and new delegations are queued",
  );
  addPausing(agent, cli, "resume", "give work to a paused agent again");
  addDelete(agent, cli);
}

const presencePaint = ({ presence, paused }: Agent, { green, yellow, dim }: Painter) => {
  if (paused || presence.paused || presence.state === "stale") return yellow;
  return presence.state === "online" ? green : dim;
};

const AGENTS: readonly Column<Agent>[] = [
  { name: "name", cell: ({ name }) => name, identifier: ({ name }) => name },
  {
    name: "presence",
    cell: presenceText,
    paint: presencePaint,
  },
  ageColumn("seen", ({ presence }) => presence.last_seen_at, { none: "never" }),
  { name: "pollers", cell: ({ presence }) => String(presence.pollers), shown: "wide" },
  { name: "queued", cell: ({ counts }) => String(counts.waiting) },
  ageColumn("oldest", ({ oldest_waiting_at }) => oldest_waiting_at ?? null, { shown: "wide" }),
  { name: "delayed", cell: ({ counts }) => String(counts.delayed), shown: "wide" },
  { name: "running", cell: ({ counts }) => String(counts.working) },
  { name: "asking", cell: ({ counts }) => String(counts.interrupted) },
  { name: "awaiting", cell: ({ counts }) => String(counts.awaiting), shown: "wide" },
  { name: "description", cell: ({ description }) => description, isText: true },
];

/** What it works on, or why it takes no work. */
function workerText({ delegations, paused }: Worker): string {
  const pause =
    paused &&
    `paused: ${oneLine(paused.reason)}, next try in ${timeLeft(Date.parse(paused.until) - Date.now())}`;
  return [...delegations, ...(pause ? [pause] : [])].join(" ") || "-";
}

const PRESENCE = `
Presence:
  online   a worker polled within the last 30 seconds, or holds a poll now
  stale    the last poll is up to 10 minutes old
  offline  older, or never`;

const WORKERS: readonly Column<Worker>[] = [
  { name: "worker", cell: ({ id }) => id, identifier: ({ id }) => id },
  ageColumn("seen", ({ last_seen_at }) => last_seen_at),
  {
    name: "presence",
    cell: workerPresence,
    paint: (worker, { green, yellow, dim }) =>
      ({ working: green, polling: green, paused: yellow, gone: dim })[workerPresence(worker)],
  },
  { name: "delegations", cell: workerText, isText: true },
];

const GONE_AFTER_MS = 60_000;

/** A worker polls at least three times a minute, unless it has work or is paused. */
function workerPresence({
  last_seen_at,
  delegations,
  paused,
}: Worker): "working" | "paused" | "polling" | "gone" {
  if (delegations.length > 0) return "working";
  if (paused) return "paused";
  return Date.now() - Date.parse(last_seen_at) < GONE_AFTER_MS ? "polling" : "gone";
}

function addList(agent: Command, { host }: Cli): void {
  const list = agent.command("list").description("list all agents with their presence and queue");
  addTableOptions(list, AGENTS)
    .addHelpText("after", PRESENCE)
    .addHelpText("after", examples("errand agent list", "errand agent list --json | jq -r .name"))
    .action(async (_options: unknown, command: Command) => {
      const options = command.optsWithGlobals<TableOptions>();
      const agents = await new Admin(await connectToRead(host, options)).listAgents();
      if (options.json) {
        for (const agent of agents) await printJson(host, agent);
        return;
      }
      await printRows(host, agents, AGENTS, options, "no agents yet");
    });
}

function addGetAgent(agent: Command, { host }: Cli): void {
  const get = agent
    .command("get")
    .description("show an agent's presence, queue and settings")
    .argument("<name>", "the agent", agentName);
  addFieldOptions(get, AGENTS)
    .addHelpText("after", examples("errand agent get scout", "errand agent get scout -o presence,queued"))
    .action(async (name: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<TableOptions>();
      const found = await new Admin(await connectToRead(host, options)).getAgent(name);
      if (options.output && !options.json) return printRows(host, [found], AGENTS, options, "");
      await (options.json ? printJson(host, found) : print(host, agentDetails(host, found)));
    });
}

function addWorkers(agent: Command, { host }: Cli): void {
  const workersOf = agent
    .command("workers")
    .description("list an agent's workers: when each was last seen, and its delegations")
    .argument("<name>", "the agent", agentName);
  addTableOptions(workersOf, WORKERS)
    .addHelpText(
      "after",
      examples("errand agent workers scout", "errand agent workers scout --json | jq -r .id"),
    )
    .action(async (name: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<TableOptions>();
      const workers = await new Admin(await connectToRead(host, options)).listWorkers(name);
      if (options.json) {
        for (const worker of workers) await printJson(host, worker);
        return;
      }
      await printRows(host, workers, WORKERS, options, `no workers of ${name}`);
    });
}

function addPausing(agent: Command, { host }: Cli, verb: "pause" | "resume", description: string): void {
  agent
    .command(verb)
    .description(description)
    .argument("<name>", "the agent", agentName)
    .addHelpText("after", examples(`errand agent ${verb} scout`))
    .action(async (name: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions>();
      const admin = new Admin(await connect(host, options));
      const found = await (verb === "pause" ? admin.pauseAgent(name) : admin.resumeAgent(name));
      await (options.json ? printJson(host, found) : print(host, `${verb}d ${name}`));
    });
}

function addDelete(agent: Command, { host }: Cli): void {
  agent
    .command("delete")
    .description("delete an agent and revoke its tokens")
    .argument("<name>", "the agent", agentName)
    .option("--force", "cancel its live delegations; without this, they prevent the deletion")
    .addHelpText("after", examples("errand agent delete scout", "errand agent delete scout --force"))
    .action(async (name: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions & { force?: boolean }>();
      const force = options.force ?? false;
      await new Admin(await connect(host, options)).deleteAgent(name, { force });
      await (options.json ? printJson(host, { deleted: name }) : print(host, `deleted ${name}`));
    });
}
