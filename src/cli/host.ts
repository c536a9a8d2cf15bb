/**
 * What the CLI gets from the process it runs in, so that it reads no environment and tests need no process.
 * Limit: signals are taken from `process` directly (signals.ts).
 */
import type { Readable, Writable } from "node:stream";

/** As the environment would give them; the broker's configuration checks them, all at once. */
export interface ServeOptions {
  readonly host?: string;
  readonly port?: string;
  readonly dataDir?: string;
  readonly redisUrl?: string;
}

/** What of a broker on this machine can be told before it runs. */
export interface Preflight {
  /** Problems of the ERRAND_* variables. */
  readonly settings: () => readonly string[];
  /** The Redis that it would use; nothing is installed. */
  readonly redis: () => Promise<{
    readonly detail: string;
    /** Reasons why a broker would not start on it. */
    readonly refused: readonly string[];
    readonly warnings: readonly string[];
  }>;
  /** How the private Redis in a data directory last loaded its append-only file; null when it has no log. */
  readonly lastLoad: (dataDir: string) => Promise<LastLoad | null>;
}

export interface LastLoad {
  /** The end of the file was cut off in the middle of a write, and dropped. */
  readonly truncated: { readonly file: string; readonly offset: number } | null;
  /** The file that could not be read. */
  readonly damaged: string | null;
}

export interface CliHost {
  readonly env: {
    /** ERRAND_URL */
    readonly url?: string | undefined;
    /** ERRAND_TOKEN */
    readonly token?: string | undefined;
    /** ERRAND_REMOTE_TOKEN */
    readonly remoteToken?: string | undefined;
    /** ERRAND_DATA_DIR, or `.errand` in the working directory; a folder of that name is searched upward. */
    readonly dataDir: string;
  };
  /** What the commands of `errand work` inherit; the CLI takes the tokens out. */
  readonly childEnv: Readonly<Record<string, string | undefined>>;
  readonly stdin: Readable;
  readonly stdout: Writable;
  readonly stderr: Writable;
  /** Colour and progress lines go to terminals alone; a task is read from a stdin that is none. */
  readonly isTty: { readonly stdin: boolean; readonly stdout: boolean; readonly stderr: boolean };
  /** Runs a broker until it is told to stop; the exit code. */
  readonly serve: (options: ServeOptions) => Promise<number>;
  readonly preflight: () => Promise<Preflight>;
  readonly version: string;
}
