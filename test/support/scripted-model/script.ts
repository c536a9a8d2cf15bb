/**
 * What the scripted model does: the last instruction of the conversation, which is a text in double brackets. The same for
 * each API of a provider.
 *
 *   [[say: TEXT]]      answers with the text
 *   [[recall]]         answers with the first thing that was said to it in this conversation
 *   [[run: COMMAND]]   runs the command with the shell tool that it is offered, then answers with what the tool returned;
 *                      FILE and BACK in it are the file that came with the task, and the folder for files that go back
 *   [[call: NAME {…}]]  calls the tool whose name ends with NAME with these arguments, then answers with what it returned;
 *                      a bracket in them is \\u005b or \\u005d
 *   [[fail: STATUS]]   the API answers with this HTTP status
 *
 * It also understands what the worker says of a person's decisions.
 */

/** A part of the conversation, oldest first. */
export interface Item {
  readonly by: "user" | "tool" | "model";
  readonly text: string;
}

export interface OfferedTool {
  readonly name: string;
  /** The names of its parameters, and which of them is a list. */
  readonly parameters: Readonly<Record<string, { readonly isList: boolean }>>;
}

export type Turn =
  | { readonly kind: "say"; readonly text: string }
  | { readonly kind: "run"; readonly tool: string; readonly arguments: Readonly<Record<string, unknown>> }
  | { readonly kind: "fail"; readonly status: number };

const SHELL = /^(?:bash|shell|shell_command|local_shell|run_shell_command|exec_command)$/i;
const INSTRUCTION = /\[\[(say|recall|run|call|fail)(?:: ([^\]]*))?\]\]/g;
const EDITED = /with these arguments(?: instead, and ask again)?: (\{.*?\})\s*(?:$|\n|\. )/;
const SHOWN = 2_000;

interface Order {
  readonly verb: string;
  readonly text: string;
}

export function nextTurn(items: readonly Item[], tools: readonly OfferedTool[]): Turn {
  const at = items.findLastIndex((item) => item.by === "user" && orderOf(item.text, items) !== undefined);
  const order = orderOf(items[at]?.text ?? "", items);
  const results = items.slice(at + 1).filter(({ by }) => by === "tool");
  switch (order?.verb) {
    case "say":
      return { kind: "say", text: order.text };
    case "recall":
      return { kind: "say", text: `It began with: ${firstSaid(items)}` };
    case "fail":
      return { kind: "fail", status: Number(order.text) };
    case "call": {
      const last = results.at(-1);
      if (last !== undefined) return { kind: "say", text: `The tool says: ${last.text.slice(0, SHOWN)}` };
      const [, name = "", json = "{}"] = /^(\S+)\s*(\{.*\})?$/.exec(order.text) ?? [];
      const tool = tools.find((one) => one.name.endsWith(name));
      if (tool === undefined) return { kind: "say", text: `No tool ${name} is offered.` };
      return { kind: "run", tool: tool.name, arguments: { ...Object(JSON.parse(json)) } };
    }
    case "run": {
      const tool = tools.find(({ name }) => SHELL.test(name));
      const last = results.at(-1);
      if (last !== undefined) return { kind: "say", text: `The tool says: ${last.text.slice(0, SHOWN)}` };
      if (tool === undefined) return { kind: "say", text: "No shell is offered." };
      return { kind: "run", tool: tool.name, arguments: argumentsFor(tool, filled(order.text, items)) };
    }
    default:
      return { kind: "say", text: "Hello." };
  }
}

/** What a user's text orders; undefined for a text that orders nothing. */
function orderOf(text: string, items: readonly Item[]): Order | undefined {
  const [, verb, rest = ""] = [...text.matchAll(INSTRUCTION)].at(-1) ?? [];
  if (verb !== undefined) return { verb, text: rest.trim() };
  const edited = EDITED.exec(text)?.[1];
  if (edited !== undefined) return { verb: "run", text: commandOf(edited) };
  if (/: allowed once/.test(text)) return lastCall(items);
  if (/\bA person denied\b|: denied\b/.test(text)) return { verb: "say", text: "It was denied." };
  return undefined;
}

/** What was asked for last. */
function lastCall(items: readonly Item[]): Order {
  const [, verb = "run", text = "true"] =
    items
      .filter(({ by }) => by === "user")
      .flatMap(({ text }) => [...text.matchAll(INSTRUCTION)])
      .findLast(([, verb]) => verb === "run" || verb === "call") ?? [];
  return { verb, text: text.trim() };
}

/** The command among the arguments that a person edited; agents name it differently. */
function commandOf(json: string): string {
  const given: unknown = JSON.parse(json);
  const { command, cmd, title } = Object(given);
  const found: unknown = command ?? cmd ?? title;
  return Array.isArray(found) ? String(found.at(-1)) : String(found);
}

function firstSaid(items: readonly Item[]): string {
  const first = items.find(({ by, text }) => by === "user" && text.includes("[["))?.text ?? "nothing";
  return (first.match(/\[\[.*?\]\]/)?.[0] ?? "").replace(/\[\[|\]\]/g, "");
}

function filled(command: string, items: readonly Item[]): string {
  const said = items.map(({ text }) => text).join("\n");
  const file = /Files that came with this task:\n- (.+)/.exec(said)?.[1] ?? "/nowhere";
  const back = /Put files that you return into this folder[^:]*: (\S+)/.exec(said)?.[1] ?? "/nowhere";
  return command.replaceAll("FILE", file).replaceAll("BACK", back);
}

/** For what a tool may require besides the command. */
function argumentsFor({ parameters }: OfferedTool, command: string): Record<string, unknown> {
  const name = "cmd" in parameters ? "cmd" : "command";
  return {
    [name]: parameters[name]?.isList ? ["bash", "-lc", command] : command,
    ...("description" in parameters && { description: "Run a command" }),
    // Codex asks a person only for what its sandbox does not allow.
    ...("sandbox_permissions" in parameters && { sandbox_permissions: "require_escalated" }),
    ...("justification" in parameters && { justification: "The task needs it." }),
  };
}
