/**
 * The processes of a benchmark: started and stopped by one, controlled over IPC. Limit: if a process dies, every request
 * to it fails.
 */
import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";
import { z } from "zod";

const questionSchema = z.object({ id: z.number(), what: z.string(), args: z.unknown() });
const answerSchema = z.object({ id: z.number(), result: z.unknown(), error: z.string().optional() });

interface Asked {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** As `npm start`, the image and the systemd unit start a gateway. */
const GATEWAY_FLAGS = ["--max-semi-space-size=32"];

const built = new Set<string>();

/** A program as plain JavaScript: compiling the sources on load would double the gateway's start time. */
function compiled(name: Program, source: string): string {
  const outfile = fileURLToPath(new URL(`../node_modules/.cache/errand-bench/${name}.mjs`, import.meta.url));
  // Once: another child may be loading it.
  if (built.has(outfile)) return outfile;
  built.add(outfile);
  buildSync({
    entryPoints: [source],
    outfile,
    bundle: true,
    packages: "external",
    platform: "node",
    format: "esm",
  });
  return outfile;
}

export type Program =
  | "gateway"
  | "submitter"
  | "worker"
  | "subscriber"
  | "crowd"
  | "heavy"
  | "bull-submitter"
  | "bull-worker";

export class Remote {
  readonly #child: ChildProcess;
  readonly #name: string;
  readonly #asked = new Map<number, Asked>();
  readonly #exited: Promise<void>;
  #next = 0;

  constructor(name: Program) {
    this.#name = name;
    const source = fileURLToPath(new URL(`./children/${name}.ts`, import.meta.url));
    const isGateway = name === "gateway";
    this.#child = fork(compiled(name, source), {
      execArgv: ["--expose-gc", ...(isGateway ? GATEWAY_FLAGS : [])],
      stdio: ["ignore", 2, 2, "ipc"],
    });
    this.#child.on("message", (message) => {
      const { id, result, error } = answerSchema.parse(message);
      const asked = this.#asked.get(id);
      this.#asked.delete(id);
      if (error === undefined) asked?.resolve(result);
      else asked?.reject(new Error(`${name}: ${error}`));
    });
    this.#exited = new Promise((resolve) => {
      this.#child.once("exit", (code, signal) => {
        for (const { reject } of this.#asked.values()) reject(new Error(`${name} ended (${signal ?? code})`));
        this.#asked.clear();
        resolve();
      });
    });
  }

  async ask<T>(what: string, answer: z.ZodType<T>, args: unknown = null): Promise<T> {
    const id = this.#next++;
    const result = await new Promise<unknown>((resolve, reject) => {
      if (!this.#child.connected) {
        reject(new Error(`${this.#name} is not running`));
        return;
      }
      this.#asked.set(id, { resolve, reject });
      this.#child.send({ id, what, args });
    });
    return answer.parse(result);
  }

  /** For messages without an answer. */
  async tell(what: string, args: unknown = null): Promise<void> {
    await this.ask(what, z.unknown(), args);
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#exited;
  }

  async end(): Promise<void> {
    if (this.#child.connected) this.#child.disconnect();
    await this.#exited;
  }
}

/** The other side: a process that serves requests, and exits when its parent does. */
export function serve(handlers: Readonly<Record<string, (args: unknown) => unknown>>): void {
  process.on("disconnect", () => process.exit(0));
  // The parent handles Ctrl-C.
  process.on("SIGINT", () => {});
  process.on("message", (message) => void handle(handlers, message));
}

async function handle(
  handlers: Readonly<Record<string, (args: unknown) => unknown>>,
  message: unknown,
): Promise<void> {
  const { id, what, args } = questionSchema.parse(message);
  try {
    const handler = handlers[what];
    if (!handler) throw new Error(`nothing is known of '${what}'`);
    const result = await handler(args);
    process.send?.({ id, result: result ?? null });
  } catch (error) {
    process.send?.({ id, result: null, error: error instanceof Error ? error.message : String(error) });
  }
}
