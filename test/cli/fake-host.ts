/** A CLI host whose streams are strings. Signals are global, so their tests start a process. */
import { PassThrough, Readable, Writable } from "node:stream";
import type { CliHost, ServeOptions } from "../../src/cli/host.ts";
import { runCli } from "../../src/cli/run.ts";
import { backups } from "../../src/offline/backups.ts";
import { migrations } from "../../src/offline/migrations.ts";

export interface Setting {
  readonly env?: Partial<CliHost["env"]>;
  readonly childEnv?: CliHost["childEnv"];
  readonly stdin?: string | Buffer | Readable;
  /** Default: a stream that keeps the text. */
  readonly stdout?: Writable;
  readonly tty?: Partial<CliHost["isTty"]>;
  readonly command?: string;
  readonly program?: string;
  readonly onServe?: (options: ServeOptions) => number;
}

export interface Run {
  readonly done: Promise<number>;
  readonly stdout: () => string;
  readonly stderr: () => string;
  readonly closeStdout: () => void;
}

/** A host whose output is discarded. */
export function host(): CliHost {
  return hostWith({}, sink([]), sink([]));
}

export function start(argv: string[], setting: Setting = {}): Run {
  const out: string[] = [];
  const err: string[] = [];
  const stdout = setting.stdout ?? sink(out);
  const host = hostWith(setting, stdout, sink(err));
  return {
    done: runCli(argv, host),
    stdout: () => out.join(""),
    stderr: () => err.join(""),
    closeStdout: () => stdout.destroy(Object.assign(new Error("write EPIPE"), { code: "EPIPE" })),
  };
}

function hostWith(setting: Setting, stdout: Writable, stderr: Writable): CliHost {
  return {
    env: { dataDir: "/nonexistent/data", ...setting.env },
    childEnv: setting.childEnv ?? { PATH: process.env.PATH },
    stdin: readable(setting.stdin),
    stdout,
    stderr,
    isTty: { stdin: true, stdout: false, stderr: false, ...setting.tty },
    serve: async (options) => setting.onServe?.(options) ?? 0,
    preflight: async () => ({
      settings: () => [],
      lastLoad: async () => null,
      redis: async () => ({ detail: "none", refused: [], warnings: [] }),
    }),
    backups: async () => backups(setting.childEnv ?? {}, "1.2.3"),
    migrations: async () => migrations(setting.childEnv ?? {}),
    version: "1.2.3",
    ...(setting.command !== undefined && { command: setting.command }),
    ...(setting.program !== undefined && { program: setting.program }),
  };
}

function readable(stdin: Setting["stdin"] = new PassThrough()): Readable {
  return stdin instanceof Readable ? stdin : Readable.from([Buffer.from(stdin)]);
}

export async function run(argv: string[], setting: Setting = {}) {
  const started = start(argv, setting);
  const code = await started.done;
  return { code, stdout: started.stdout(), stderr: started.stderr() };
}

function sink(into: string[]): Writable {
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      into.push(chunk.toString());
      done();
    },
  });
}
