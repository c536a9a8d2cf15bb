/**
 * What the relay needs of whoever runs it: one delegation under one lease. Limit: shapes only; how the broker is reached
 * is the port's business, over HTTP from outside and by its verbs inside.
 */
import type { Artifact, Message } from "../schema/a2a.ts";
import type { InterruptInput } from "../schema/interrupt.ts";
import type { Lease, ReplyInput } from "../schema/lease.ts";
import type { Checkpoint } from "../schema/values.ts";

/** `kept`; `full`: the delegation accepts only its reply; `too_large`: its reply will be refused too. */
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
  /** After the abort: whether nobody wants the delegation any more. False when another run may go on with it. */
  readonly isOver: () => Promise<boolean>;
  /** Resolves when the broker has it; rejects when the lease is lost. */
  readonly saveCheckpoint: (checkpoint: Checkpoint) => Promise<void>;
  /** Never waits and never fails; the port keeps the broker's pace. */
  readonly progress: (message: string) => void;
  /** One at a time, across a broker that is away; rejects when the lease is lost. */
  readonly artifact: (chunk: ArtifactChunk) => Promise<ArtifactOutcome>;
  /** Calls back for each follow-up, from the first of the delegation on. */
  readonly onMessage: (listener: (message: Message) => void) => void;
  /** A line for the log: no message bodies, no credentials. */
  readonly note: (what: string) => void;
}

/** How a run ends. What a port cannot pass on any more, since its signal aborted, it drops. */
export type RelayOutcome =
  | { readonly kind: "reply"; readonly reply: Omit<ReplyInput, "next"> }
  | { readonly kind: "ask"; readonly interrupt: InterruptInput }
  | { readonly kind: "release"; readonly delaySeconds: number; readonly reason: string }
  | { readonly kind: "canceled"; readonly text: string | undefined }
  | { readonly kind: "stopped" };
