/**
 * `errand demo`: a tour against the running broker, with an agent in this process. It leaves nothing behind but figures.
 */
import type { Command } from "commander";
import { Admin } from "../../client/admin.ts";
import { Agent } from "../../client/agent.ts";
import { Delegator } from "../../client/delegator.ts";
import type { ConnectionOptions } from "../../client/http.ts";
import { randomKey } from "../../client/random-key.ts";
import { type Cli, connect, examples, type GlobalOptions } from "../context.ts";
import type { CliHost } from "../host.ts";
import { note, oneLine, painter, print, printJson, withCommand } from "../show/output.ts";
import { interruptible } from "../signals.ts";
import { demoHandler, Shown, TASK } from "./agent.ts";
import { type Say, Tour } from "./tour.ts";

interface DemoOptions extends GlobalOptions {
  readonly yes?: boolean;
}

const ABOUT = `
It creates an agent, works for it in this process, delegates a task, shows the progress, asks for your approval, and
deletes both at the end, or at Ctrl-C. Each step names the command that does the same. It needs the operator's token,
which errand finds if the broker runs on this machine. With --yes, or without a terminal, it
approves by itself.`;

export function addDemo(program: Command, { host }: Cli): void {
  program
    .command("demo")
    .description("a tour against the running broker: an agent, a task, its progress, a question, the answer")
    .option("--yes", "approve without asking you")
    .addHelpText("after", ABOUT)
    .addHelpText("after", examples("errand demo", "errand demo --yes"))
    .action(async (_options: unknown, command: Command) => {
      const options = command.optsWithGlobals<DemoOptions>();
      const connection = await connect(host, options);
      await interruptible((signal) => demo(host, connection, options, signal));
    });
}

async function demo(
  host: CliHost,
  connection: ConnectionOptions,
  { yes = false, json = false }: DemoOptions,
  signal: AbortSignal,
): Promise<void> {
  const say = steps(host, json);
  const admin = new Admin(connection);
  const name = `demo-${randomKey().slice(0, 6)}`;
  await admin.createAgent(name, { description: "the agent of 'errand demo'" }, { signal });
  const shown = new Shown();
  // createAgent() has reached the broker.
  const worker = new Agent({ ...connection, failFast: false, agent: name }, demoHandler(shown));
  const delegator = new Delegator(connection);
  let id: string | undefined;
  try {
    await say(`Create an agent, ${name}.`, `errand agent put ${name}`);
    const failed = new AbortController();
    worker.run().catch((error: unknown) => failed.abort(error));
    await say("Work for it, here in this process.", `errand work --agent ${name} -- COMMAND`);
    ({ id } = await delegator.delegate({ target: name, task: TASK }, { signal }));
    await say(`Delegate a task: ${id}.`, `errand delegate ${name} "${TASK}"`);
    const isAsked = host.isTty.stdin && host.isTty.stderr && !json && !yes;
    const stop = AbortSignal.any([signal, failed.signal]);
    await new Tour({ host, delegator, id, shown, say, isAsked, isForced: yes }).run(stop);
  } finally {
    await cleanUp({ admin, worker, delegator, name, id }).catch(async (error: unknown) => {
      await note(host, `${name} remains: delete it with 'errand agent delete ${name} --force'.`);
      throw error;
    });
    await say("Clean up: delete the agent and the delegation.", `errand agent delete ${name}`);
  }
}

interface Created {
  readonly admin: Admin;
  readonly worker: Agent;
  readonly delegator: Delegator;
  readonly name: string;
  readonly id: string | undefined;
}

async function cleanUp({ admin, worker, delegator, name, id }: Created): Promise<void> {
  await worker.stop();
  // Cancels the delegation if it is still live.
  await admin.deleteAgent(name, { force: true });
  if (id !== undefined) await delegator.delete(id);
}

function steps(host: CliHost, json: boolean): Say {
  const paint = painter(host, "stdout");
  let number = 0;
  return async (text, command) => {
    const line = oneLine(text);
    if (command !== undefined) number += 1;
    if (json) return printJson(host, { step: number, text: line, ...(command !== undefined && { command }) });
    if (command === undefined) return print(host, `   ${line}`);
    await print(
      host,
      `${paint.bold(`${number}. ${line}`)}\n   ${paint.dim(withCommand(host, `$ ${command}`))}`,
    );
  };
}
