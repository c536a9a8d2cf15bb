/**
 * The relay's interface to the program that runs it: one delegation under one lease. `errand relay` implements it over
 * HTTP, a gateway by function calls.
 */
import type { Artifact, Message } from "../schema/a2a.ts";
import type { InterruptInput } from "../schema/interrupt.ts";
import type { Lease, ReplyInput } from "../schema/lease.ts";
import type { Checkpoint } from "../schema/values.ts";
import type { LoadFile } from "./message-files.ts";

/** `full`: the delegation accepts no more artifacts; `too_large`: the broker refuses the reply too. */
export type ArtifactOutcome = "kept" | "full" | "too_large";

export interface ArtifactChunk {
  readonly artifact: Artifact;
  readonly append: boolean;
  readonly lastChunk: boolean;
}

export interface RelayPort {
  readonly lease: Lease;
  /** Aborts when this run must stop: the lease is lost, or the process ends. */
  readonly signal: AbortSignal;
  /** After the abort: true when the delegation is over, false when another run may continue it. */
  readonly isOver: () => Promise<boolean>;
  /** Resolves when the broker has stored it; rejects when the lease is lost. */
  readonly saveCheckpoint: (checkpoint: Checkpoint) => Promise<void>;
  /** Never waits and never fails; the port limits the rate. */
  readonly progress: (message: string) => void;
  /** Make one call at a time. Retries while the broker is unavailable; rejects when the lease is lost. */
  readonly artifact: (chunk: ArtifactChunk) => Promise<ArtifactOutcome>;
  /** Absent: parts that name files of the broker are passed on as they are. */
  readonly loadFile?: LoadFile;
  /** Calls the listener for each follow-up, from the delegation's first. */
  readonly onMessage: (listener: (message: Message) => void) => void;
  /** Writes a log line, which must contain no message bodies and no credentials. */
  readonly note: (what: string) => void;
}

/** A try costs the server little, so a relay does not pause for long. */
export const LONGEST_PAUSE_MS = 60_000;

/** The end of a run. After its signal aborted, a port ignores an outcome that it can no longer send. */
export type RelayOutcome =
  | { readonly kind: "reply"; readonly reply: Omit<ReplyInput, "next" | "worker"> }
  /** The server answered with a bare Message and started no task. */
  | { readonly kind: "message"; readonly message: Message }
  | { readonly kind: "ask"; readonly interrupt: InterruptInput }
  | {
      readonly kind: "release";
      readonly delaySeconds: number;
      readonly reason: string;
      /** Why the relay pauses: for those who see the agent but not the delegation. */
      readonly pause: string;
    }
  | { readonly kind: "canceled"; readonly text: string | undefined }
  | { readonly kind: "stopped" };
