/**
 * A line of the log for people: local time, level, message, then the fields. Text may come from anyone, so characters
 * that control a terminal are escaped. A field of several lines, a stack, follows with its lines indented.
 */
import { styleText } from "node:util";
import * as z from "zod";
import { localDateTime } from "../util/local-time.ts";
import { parseJson } from "../util/parse-json.ts";

const TRACE = ["trace", "gray"] as const;
const LEVELS = [
  ["fatal", "red"],
  ["error", "red"],
  ["warn", "yellow"],
  ["info", "green"],
  ["debug", "blue"],
  TRACE,
] as const;

type Level = (typeof LEVELS)[number];

const levelSchema = z.string().transform((text): Level => LEVELS.find(([name]) => name === text) ?? TRACE);
const entrySchema = z.looseObject({
  level: levelSchema,
  time: z.iso.datetime(),
  msg: z.string().default(""),
});

/** Control and format characters: among them escape sequences, and those that turn the direction of text. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;
const BARE = /^[\p{L}\p{N}_.:/@+-]+$/u;

const escaped = (text: string): string =>
  text.replace(UNSAFE, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);

/** `line`: what pino wrote. Any other text is returned with its control characters escaped. */
export function textLine(line: string, color: boolean): string {
  const { level, time, msg, ...fields } = entrySchema.safeParse(parseJson(line)).data ?? {};
  if (level === undefined || time === undefined || msg === undefined) return `${escaped(line.trimEnd())}\n`;
  const paint = (style: Parameters<typeof styleText>[0], text: string): string =>
    color ? styleText(style, text, { validateStream: false }) : text;
  const [name, style] = level;
  const short: string[] = [];
  const long: string[] = [];
  for (const [key, value] of Object.entries(fields)) {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    if (text.trim().includes("\n")) long.push(`${escaped(key)}:`, ...text.trim().split("\n"));
    else
      short.push(
        `${paint("dim", `${escaped(key)}=`)}${typeof value === "string" ? quoted(text) : escaped(text)}`,
      );
  }
  const head = [
    paint("dim", localDateTime(new Date(time))),
    paint(style, name.padEnd(5)),
    escaped(msg),
    ...short,
  ];
  return [head.join(" "), ...long.map((more) => `    ${escaped(more)}`), ""].join("\n");
}

function quoted(text: string): string {
  return BARE.test(text) ? text : escaped(JSON.stringify(text));
}
