/**
 * Reads the source files below a folder and counts: lines, code, comments, identifiers.
 * Limit: it finds tokens by pattern, so code inside a template string counts as text.
 */
import { readdir, readFile, realpath, stat } from "node:fs/promises";
import { extname, isAbsolute, join, relative, resolve } from "node:path";

export interface FileCount {
  readonly path: string;
  readonly lines: number;
  readonly code: number;
  readonly comments: number;
}

export interface Survey {
  readonly folder: string;
  readonly files: readonly FileCount[];
  readonly words: ReadonlyMap<string, number>;
}

export interface SurveyOptions {
  readonly signal?: AbortSignal | undefined;
  /** Called before a file is read. */
  readonly onFile?: ((path: string, done: number, total: number) => Promise<void> | void) | undefined;
}

/** A task that cannot be done as given; the delegator receives the code. */
export class SurveyError extends Error {
  override readonly name = "SurveyError";
  readonly code: "no_such_folder" | "not_a_folder" | "outside_repo";

  constructor(code: SurveyError["code"], message: string) {
    super(message);
    this.code = code;
  }
}

/** One match is one token; anything that is not a comment, a text or a word is other code. */
const JAVASCRIPT = new RegExp(
  [
    String.raw`(?<comment>\/\/.*|\/\*[\s\S]*?(?:\*\/|$))`,
    String.raw`(?<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|${"`"}(?:\\[\s\S]|[^${"`"}\\])*${"`"}`,
    // A slash where a value is expected starts a regular expression; elsewhere it divides.
    String.raw`(?<=[(,=:[!&|?{};]\s*)\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[a-z]*)`,
    String.raw`(?<word>[A-Za-z_$][\w$]*)|\S`,
  ].join("|"),
  "g",
);
const LUA = new RegExp(
  [
    String.raw`(?<comment>--\[\[[\s\S]*?(?:\]\]|$)|--.*)`,
    String.raw`(?<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\[\[[\s\S]*?\]\])`,
    String.raw`(?<word>[A-Za-z_]\w*)|\S`,
  ].join("|"),
  "g",
);

const LANGUAGES: Readonly<Record<string, RegExp>> = {
  ".cjs": JAVASCRIPT,
  ".js": JAVASCRIPT,
  ".jsx": JAVASCRIPT,
  ".lua": LUA,
  ".mjs": JAVASCRIPT,
  ".ts": JAVASCRIPT,
  ".tsx": JAVASCRIPT,
};

const KEYWORDS = new Set(
  `abstract and any as async await boolean break case catch class const continue default delete do else
  elseif end enum export extends false finally for from function get if implements import in instanceof
  interface is keyof let local never new nil not null number object of or override private public
  readonly repeat return satisfies set static string super switch symbol then this throw true try type
  typeof undefined unknown until var void while yield`.split(/\s+/),
);

export async function survey(root: string, folder: string, options: SurveyOptions = {}): Promise<Survey> {
  const { signal, onFile } = options;
  const base = await realpath(root);
  const top = await locate(base, folder);
  const paths = await sourcesBelow(top);
  const files: FileCount[] = [];
  const words = new Map<string, number>();
  for (const [done, path] of paths.entries()) {
    signal?.throwIfAborted();
    const name = relative(base, path);
    await onFile?.(name, done, paths.length);
    files.push({
      path: name,
      ...count(await readFile(path, "utf8"), LANGUAGES[extname(path)] ?? JAVASCRIPT, words),
    });
  }
  return { folder, files, words };
}

/** The folder's real path, which must be in the repository after all links and dots are resolved. */
async function locate(base: string, folder: string): Promise<string> {
  const wanted = resolve(base, folder);
  const outside = () => new SurveyError("outside_repo", `${folder} is outside the repository`);
  // Checked before the folder is read, so that the error does not reveal what exists outside.
  if (!isInside(base, wanted)) throw outside();
  const real = await realpath(wanted).catch(() => {
    throw new SurveyError("no_such_folder", `there is no folder ${folder}`);
  });
  if (!isInside(base, real)) throw outside();
  if (!(await stat(real)).isDirectory()) throw new SurveyError("not_a_folder", `${folder} is not a folder`);
  return real;
}

function isInside(base: string, path: string): boolean {
  const way = relative(base, path);
  return !isAbsolute(way) && way.split(/[\\/]/)[0] !== "..";
}

async function sourcesBelow(folder: string): Promise<string[]> {
  const found: string[] = [];
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory() && !/^(?:\..*|node_modules|dist)$/.test(entry.name)) {
      found.push(...(await sourcesBelow(path)));
    } else if (entry.isFile() && extname(entry.name) in LANGUAGES) {
      found.push(path);
    }
  }
  return found.sort();
}

/** A line with code and a comment counts as code; a line with neither is blank. */
function count(text: string, language: RegExp, words: Map<string, number>) {
  const code = new Set<number>();
  const comments = new Set<number>();
  let line = 0;
  let at = 0;
  for (const token of text.trimEnd().matchAll(language)) {
    line += newlines(text.slice(at, token.index));
    const last = line + newlines(token[0]);
    const lines = token.groups?.comment === undefined ? code : comments;
    for (; line <= last; line += 1) lines.add(line);
    line = last;
    at = token.index + token[0].length;
    const word = token.groups?.word;
    if (word !== undefined && !KEYWORDS.has(word)) words.set(word, (words.get(word) ?? 0) + 1);
  }
  const lines = newlines(text) + (text === "" || text.endsWith("\n") ? 0 : 1);
  return { lines, code: code.size, comments: [...comments].filter((at) => !code.has(at)).length };
}

function newlines(text: string): number {
  return text.split("\n").length - 1;
}

/** For people: five largest files, most frequent identifiers. */
export function report({ folder, files, words }: Survey): string {
  const sum = (of: (file: FileCount) => number) => files.reduce((total, file) => total + of(file), 0);
  const lines = sum((file) => file.lines);
  const code = sum((file) => file.code);
  const comments = sum((file) => file.comments);
  const largest = [...files].sort((a, b) => b.lines - a.lines).slice(0, 5);
  const frequent = [...words].sort(([, a], [, b]) => b - a).slice(0, 8);
  return [
    `${folder}: ${files.length} source files, ${lines} lines`,
    `${code} lines of code, ${comments} of comment, ${lines - code - comments} blank`,
    `identifiers: ${frequent.map(([word, times]) => `${word} ${times}`).join(", ") || "none"}`,
    "largest files:",
    ...largest.map((file) => `${String(file.lines).padStart(6)}  ${file.path}`),
  ].join("\n");
}
