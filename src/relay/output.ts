/**
 * The artifacts of a remote task, and what the broker has of them. Chunks that come close together go as one, what came
 * by a snapshot as well is not sent twice. Limit: what outgrows a delegation ends the run.
 */
import type { Artifact } from "../schema/a2a.ts";
import { LIMITS } from "../schema/limits.ts";
import type { RelayPort } from "./port.ts";

/** At most so often, for the events of a delegation are counted. */
const EVERY_MS = 250;

/** The remote's output is more than a delegation holds. */
export class TooLargeError extends Error {
  override readonly name = "TooLargeError";
}

interface Kept {
  artifact: Artifact;
  bytes: number;
  /** How many of its parts the broker has; none when the whole must take its place. */
  sent: number | "none";
  lastChunk: boolean;
}

const sizeOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));
const sameJson = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

export class Output {
  readonly #port: RelayPort;
  readonly #kept = new Map<string, Kept>();
  #bytes = 0;
  /** The broker takes no more events of this delegation; the rest goes with the reply. */
  #full = false;
  #sending: Promise<void> = Promise.resolve();
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Told when sending failed in the background. */
  readonly #onError: (error: unknown) => void;

  constructor(port: RelayPort, onError: (error: unknown) => void) {
    this.#port = port;
    this.#onError = onError;
    for (const artifact of port.lease.delegation.artifacts) {
      this.#put(artifact, artifact.parts.length, false);
    }
  }

  get isEmpty(): boolean {
    return this.#kept.size === 0;
  }

  chunk(artifact: Artifact, append: boolean, lastChunk: boolean): void {
    const known = this.#kept.get(artifact.artifactId);
    if (known && append) {
      const parts = [...known.artifact.parts, ...artifact.parts];
      const bytes = known.bytes + sizeOf(artifact);
      this.#put({ ...known.artifact, ...artifact, parts }, known.sent, lastChunk, bytes);
    } else {
      this.#put(artifact, "none", lastChunk);
    }
    this.#flushSoon();
  }

  /** All that the task has, as the server keeps it: it decides. */
  snapshot(artifacts: readonly Artifact[]): void {
    for (const artifact of artifacts) {
      const known = this.#kept.get(artifact.artifactId);
      if (known && sameJson(known.artifact, artifact)) continue;
      const before = known?.artifact.parts ?? [];
      const grew = known && sameJson(before, artifact.parts.slice(0, before.length));
      this.#put(artifact, grew ? known.sent : "none", false);
      this.#flushSoon();
    }
  }

  #flushSoon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.flush().catch(this.#onError);
    }, EVERY_MS);
  }

  /** Sends what the broker lacks; one call after the other. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const sent = this.#sending.then(() => this.#flush());
    this.#sending = sent.catch(() => undefined);
    return sent;
  }

  /** What only the reply can carry. */
  rest(): Artifact[] {
    return [...this.#kept.values()].filter(isBehind).map(({ artifact }) => artifact);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#full = true;
  }

  #put(artifact: Artifact, sent: Kept["sent"], lastChunk: boolean, bytes = sizeOf(artifact)): void {
    this.#bytes += bytes - (this.#kept.get(artifact.artifactId)?.bytes ?? 0);
    this.#kept.set(artifact.artifactId, { artifact, bytes, sent, lastChunk });
    if (this.#bytes > LIMITS.delegation_bytes.value) throw new TooLargeError("the artifacts are too large");
  }

  async #flush(): Promise<void> {
    for (const id of [...this.#kept.keys()]) {
      for (let kept = this.#kept.get(id); kept && isBehind(kept) && !this.#full; kept = this.#kept.get(id)) {
        await this.#send(kept);
      }
    }
  }

  async #send({ artifact, sent, lastChunk }: Kept): Promise<void> {
    const append = sent !== "none";
    const parts = append ? artifact.parts.slice(sent) : artifact.parts;
    const outcome = await this.#port.artifact({ artifact: { ...artifact, parts }, append, lastChunk });
    if (outcome === "full") this.#full = true;
    if (outcome === "too_large") throw new TooLargeError("the artifacts are too large");
    const now = this.#kept.get(artifact.artifactId);
    if (!now) return;
    if (outcome === "unknown") now.sent = "none";
    if (outcome !== "kept") return;
    // More may have come meanwhile; a replacement has begun anew.
    const grew =
      now.sent === sent && sameJson(now.artifact.parts.slice(0, artifact.parts.length), artifact.parts);
    if (grew) now.sent = artifact.parts.length;
  }
}

function isBehind({ artifact, sent }: Kept): boolean {
  return sent === "none" || sent < artifact.parts.length;
}
