/**
 * The CLI's process: its environment, its streams, and the broker's parts that the CLI starts. The CLI gets them from
 * here, so that tests need no process of their own. Limit: signals.ts uses `process` directly.
 */
import type { Readable, Writable } from "node:stream";

/** Unparsed, like environment variables; config.ts validates them. */
export interface ServeOptions {
  readonly host?: string;
  readonly port?: string;
  readonly dataDir?: string;
  readonly redisUrl?: string;
  readonly workers?: string;
  readonly log?: string;
}

/** Checks of this machine that need no running broker. */
export interface Preflight {
  /** Problems with the ERRAND_* variables. */
  readonly settings: () => readonly string[];
  /** The Redis that a broker would use. Installs nothing. */
  readonly redis: () => Promise<{
    readonly detail: string;
    /** Why a broker would refuse to start on it. */
    readonly refused: readonly string[];
    readonly warnings: readonly string[];
    /** It does not respond. */
    readonly isAway?: boolean;
  }>;
  /** How the embedded Redis in a data directory last loaded its append-only file; null without a log. */
  readonly lastLoad: (dataDir: string) => Promise<LastLoad | null>;
}

export interface LastLoad {
  /** The last write in the file was incomplete, and Redis dropped it. */
  readonly truncated: { readonly file: string; readonly offset: number } | null;
  /** The file that Redis could not read. */
  readonly damaged: string | null;
}

/** Where the data of a broker is; by default, where its settings say. */
export interface Place {
  /** Overrides the settings, including a Redis that they name. */
  readonly dataDir?: string | undefined;
  readonly redisUrl?: string | undefined;
  /** The option that `redisUrl` comes from, if it is not --redis-url. */
  readonly redisFlag?: string | undefined;
  /** The data directory that a search found; used unless an option or the settings name a Redis. */
  readonly foundDataDir?: string | undefined;
}

interface BackupRequest extends Place {
  readonly path: string;
  readonly force: boolean;
  readonly signal: AbortSignal;
}

export interface BackupSummary {
  readonly file: string;
  /** The data directory, or the address of Redis; null if only the file was checked. */
  readonly redis: string | null;
  readonly format: number;
  readonly errand_version: string;
  readonly created_at: string;
  readonly server: string;
  readonly keys: number;
  readonly delegations: number;
  readonly bytes: number;
  readonly sha256: string;
  /** The stored files that the data names. Their contents are not in a backup. */
  readonly files: {
    readonly count: number;
    /** Where the contents are, or belong; null: the broker stores none, or only the file was checked. */
    readonly place: string | null;
    /** Of a restore: how many have no content in the place; null if it was not looked at. */
    readonly missing: number | null;
  };
}

/** Copies of a broker's data. Errors are ErrandApiErrors. */
export interface Backups {
  readonly backUp: (
    request: BackupRequest & { readonly onProgress: (keys: number, bytes: number) => void },
  ) => Promise<BackupSummary>;
  readonly restore: (
    request: BackupRequest & {
      /** Only check the file. */
      readonly check: boolean;
      readonly onProgress: (keys: number, of: number) => void;
    },
  ) => Promise<BackupSummary>;
  /** Finds the contents of files that no file has, and may delete them. */
  readonly orphans: (
    request: Place & {
      readonly most: number;
      readonly isDeleting: boolean;
      readonly signal: AbortSignal;
    },
  ) => Promise<OrphanSummary>;
}

export interface OrphanSummary {
  readonly place: string;
  readonly found: readonly { readonly name: string; readonly size: number; readonly changed_at: string }[];
  /** There may be more. */
  readonly more: boolean;
}

export interface MigrationSummary {
  /** A data directory, or the address of Redis. */
  readonly source: string;
  readonly target: string;
  readonly dry_run: boolean;
  readonly keys: number;
  readonly delegations: number;
  readonly shards: { readonly from: number; readonly to: number };
  /** Agents that move to another shard. */
  readonly moved: readonly string[];
  /** Agents that stay in their shard until they have no unfinished work. */
  readonly stay: readonly string[];
}

/** Moves a broker's data. Errors are ErrandApiErrors. */
export interface Migrations {
  readonly migrate: (
    request: Place & {
      /** Null: the data stays where it is. */
      readonly to: Place | null;
      readonly shards: number | undefined;
      readonly force: boolean;
      readonly dryRun: boolean;
      readonly signal: AbortSignal;
      readonly onProgress: (keys: number, of: number) => void;
    },
  ) => Promise<MigrationSummary>;
}

export interface CliHost {
  readonly env: {
    /** ERRAND_URL */
    readonly url?: string | undefined;
    /** ERRAND_TOKEN */
    readonly token?: string | undefined;
    /** ERRAND_REMOTE_TOKEN */
    readonly remoteToken?: string | undefined;
    /** ERRAND_EGRESS_PROXY */
    readonly egressProxy?: string | undefined;
    /** ERRAND_DATA_DIR, or `.errand`, which is also searched for in parent directories. */
    readonly dataDir: string;
    /** It is a command of `errand work`. */
    readonly isCommand?: boolean | undefined;
  };
  /** The environment for the commands of `errand work`; the CLI removes the tokens. */
  readonly childEnv: Readonly<Record<string, string | undefined>>;
  readonly stdin: Readable;
  readonly stdout: Writable;
  readonly stderr: Writable;
  /** Colors and status lines need a terminal; a task is read from stdin unless stdin is a terminal. */
  readonly isTty: { readonly stdin: boolean; readonly stdout: boolean; readonly stderr: boolean };
  /** Runs a broker until a signal stops it; returns the exit code. */
  readonly serve: (options: ServeOptions) => Promise<number>;
  readonly preflight: () => Promise<Preflight>;
  readonly backups: () => Promise<Backups>;
  readonly migrations: () => Promise<Migrations>;
  readonly version: string;
  /** How the program was started, for hints that name commands. Default: `errand`. */
  readonly command?: string;
  /** The file of the program, for completion scripts of shells that do not find it on the PATH. */
  readonly program?: string;
}
