/**
 * Runs the shell transcripts of a document and compares what is printed. Commands follow `$ ` (continued after `> `) in
 * fenced `console` blocks; one shell runs them all. An answer is JSON or a stream of events with JSON, then perhaps an
 * `HTTP nnn` line; everything else is compared as text.
 *
 * Marks in the expected text: `"dlg_…"` is any string that begins with `dlg_`; `"…"` is any value; a member
 * `"…": "…"` stands for members that are not shown. In a command, `dlg_…` is the last text that matched this mark.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { onTestFinished } from "vitest";

export interface Step {
  /** The line of the command in the document, from 1. */
  readonly line: number;
  readonly command: string;
  readonly expected: string;
}

const MARK = /[\w-]*…/gu;

export function parseTranscripts(markdown: string): Step[] {
  const steps: { line: number; command: string; expected: string[] }[] = [];
  let inside = false;
  for (const [index, line] of markdown.split("\n").entries()) {
    if (line.startsWith("```")) {
      inside = line === "```console";
      continue;
    }
    if (!inside) continue;
    const last = steps.at(-1);
    if (line.startsWith("$ ")) steps.push({ line: index + 1, command: line.slice(2), expected: [] });
    else if (line.startsWith("> ") && last) last.command += `\n${line.slice(2)}`;
    else last?.expected.push(line);
  }
  return steps.map(({ expected, ...step }) => ({ ...step, expected: expected.join("\n").trim() }));
}

/** The differences, one per line. `said` collects the texts that matched marks. */
export function differences(
  expected: unknown,
  actual: unknown,
  said: Map<string, string>,
  at = "",
): string[] {
  if (expected === "…") return [];
  const differs = [
    `${at || "the answer"}: expected ${JSON.stringify(expected)}, got ${JSON.stringify(actual)}`,
  ];
  if (typeof expected === "string" && expected.endsWith("…")) {
    if (typeof actual !== "string" || !actual.startsWith(expected.slice(0, -1))) return differs;
    said.set(expected, actual);
    return [];
  }
  if (Array.isArray(expected)) {
    if (!Array.isArray(actual) || actual.length !== expected.length) return differs;
    return expected.flatMap((value, index) => differences(value, actual[index], said, `${at}[${index}]`));
  }
  if (!isObject(expected)) return expected === actual ? [] : differs;
  if (!isObject(actual)) return differs;
  const { "…": rest, ...named } = expected;
  const more = rest === undefined ? Object.keys(actual).filter((key) => !Object.hasOwn(named, key)) : [];
  return [
    ...more.map((key) => `${at}.${key}: not in the document`),
    ...Object.entries(named).flatMap(([key, value]) => differences(value, actual[key], said, `${at}.${key}`)),
  ];
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Compares the output of a command with the document. */
export function compare(expected: string, printed: string, said: Map<string, string>): string[] {
  const [wanted, got] = [split(expected), split(printed)];
  if (wanted === undefined || got === undefined || wanted.status !== got.status) {
    return expected === printed ? [] : [`expected:\n${expected}\ngot:\n${printed}`];
  }
  return differences(wanted.value, got.value, said);
}

/** What an answer says, and its status. Undefined for other text. */
function split(text: string): { value: unknown; status?: string | undefined } | undefined {
  const [, body = "", status] = /^(.*?)\s*(?:(?:^|\n)(HTTP \d+))?$/s.exec(text) ?? [];
  if (/^[[{].*[\]}]$/s.test(body)) return { value: JSON.parse(body), status };
  return /^(?:retry|id|event|data): /.test(body) ? { value: frames(body), status } : undefined;
}

/** The frames of an event stream. In a document, `data` may have several lines. */
function frames(text: string): unknown[] {
  return text.split(/\n\n+/).map((frame) =>
    Object.fromEntries(
      frame.split(/\n(?=\w+: )/).map((line) => {
        const [, name = "", value = ""] = /^(\w+): (.*)$/s.exec(line) ?? [];
        return [name, name === "data" ? JSON.parse(value) : value];
      }),
    ),
  );
}

/** One bash for all commands; it mixes standard error into the output. */
export async function openShell(cwd: string): Promise<(command: string) => Promise<string>> {
  const shell = spawn("bash", ["--noprofile", "--norc"], { cwd, stdio: ["pipe", "pipe", "ignore"] });
  await once(shell, "spawn");
  let printed = "";
  let heard = () => {};
  shell.stdout.on("data", (bytes: Buffer) => {
    printed += bytes.toString();
    heard();
  });
  const exited = once(shell, "exit").then(() => heard());
  onTestFinished(async () => {
    shell.stdin.end();
    shell.kill();
    await exited;
  });
  shell.stdin.write("exec 2>&1\n");
  let runs = 0;
  return async (command) => {
    runs += 1;
    const end = `--- end of command ${runs} ---\n`;
    shell.stdin.write(`${command}\nprintf '%s\\n' '${end.trimEnd()}'\n`);
    while (!printed.endsWith(end)) {
      if (shell.exitCode !== null) throw new Error(`the shell ended: ${printed}`);
      await new Promise<void>((resolve) => {
        heard = resolve;
      });
    }
    const text = printed.slice(0, -end.length).trim();
    printed = "";
    return text;
  };
}

/** `command` with its marks replaced. */
export function filled({ command, line }: Step, said: ReadonlyMap<string, string>): string {
  return command.replaceAll(MARK, (mark) => {
    const value = said.get(mark);
    if (value === undefined) throw new Error(`line ${line}: nothing was printed that '${mark}' stands for`);
    return value;
  });
}
