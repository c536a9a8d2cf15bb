/**
 * The artifacts of a remote task, and how much of each the broker has. Chunks that arrive close together are sent as one,
 * and nothing is sent twice. Output that exceeds the size limit of a delegation ends the run.
 */
import type { Artifact } from "../schema/a2a.ts";
import { LIMITS } from "../schema/limits.ts";
import type { RelayPort } from "./port.ts";

/** The shortest time between two rounds of sending, because a delegation has an event limit. */
const EVERY_MS = 250;
/** The size of one call, well below the usual body limit of a broker. A single part is not divided. */
const CALL_BYTES = 512 * 1024;

/** The output exceeds the size limit of a delegation. */
export class OutputTooLargeError extends Error {
  override readonly name = "OutputTooLargeError";
}

interface Tracked {
  artifact: Artifact;
  bytes: number;
  /** How many of its parts the broker has; "none": the next call replaces the whole artifact. */
  sent: number | "none";
  lastChunk: boolean;
}

const sizeOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));
const sameJson = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

export class Output {
  readonly #port: RelayPort;
  readonly #artifacts = new Map<string, Tracked>();
  #bytes = 0;
  /** The broker accepts no more artifacts of this delegation; the rest goes with the reply. */
  #full = false;
  #sending: Promise<void> = Promise.resolve();
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Called when sending in the background failed. */
  readonly #onError: (error: unknown) => void;

  constructor(port: RelayPort, onError: (error: unknown) => void) {
    this.#port = port;
    this.#onError = onError;
    for (const artifact of port.lease.delegation.artifacts) {
      this.#put(artifact, artifact.parts.length, false);
    }
  }

  get isEmpty(): boolean {
    return this.#artifacts.size === 0;
  }

  chunk(artifact: Artifact, append: boolean, lastChunk: boolean): void {
    const known = this.#artifacts.get(artifact.artifactId);
    if (known && append) {
      const parts = [...known.artifact.parts, ...artifact.parts];
      const bytes = known.bytes + sizeOf(artifact.parts);
      this.#put({ ...known.artifact, ...artifact, parts }, known.sent, lastChunk, bytes);
    } else {
      this.#put(artifact, "none", lastChunk);
    }
    this.#flushSoon();
  }

  /** Sets all artifacts of the task; they replace the artifacts that chunks have built. */
  snapshot(artifacts: readonly Artifact[]): void {
    for (const artifact of artifacts) {
      const known = this.#artifacts.get(artifact.artifactId);
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
      this.#enqueue(() => this.#round()).catch(this.#onError);
    }, EVERY_MS);
  }

  /** Sends everything that the broker does not have yet. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    return this.#enqueue(() => this.#flush());
  }

  /** Runs the work after all work that was queued before. */
  #enqueue(work: () => Promise<void>): Promise<void> {
    const sent = this.#sending.then(work);
    this.#sending = sent.catch(() => undefined);
    return sent;
  }

  /** Sends each artifact once; chunks that arrive meanwhile are sent in the next round. */
  async #round(): Promise<void> {
    for (const id of [...this.#artifacts.keys()]) {
      const kept = this.#artifacts.get(id);
      if (kept && isBehind(kept) && !this.#full) await this.#send(kept);
    }
    if (!this.#full && [...this.#artifacts.values()].some(isBehind)) this.#flushSoon();
  }

  /** The artifacts that the broker does not have completely; the reply must contain them. */
  rest(): Artifact[] {
    return [...this.#artifacts.values()].filter(isBehind).map(({ artifact }) => artifact);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#full = true;
  }

  #put(artifact: Artifact, sent: Tracked["sent"], lastChunk: boolean, bytes = sizeOf(artifact)): void {
    this.#bytes += bytes - (this.#artifacts.get(artifact.artifactId)?.bytes ?? 0);
    this.#artifacts.set(artifact.artifactId, { artifact, bytes, sent, lastChunk });
    if (this.#bytes > LIMITS.delegation_bytes.value)
      throw new OutputTooLargeError("the artifacts are too large");
  }

  async #flush(): Promise<void> {
    for (const id of [...this.#artifacts.keys()]) {
      for (
        let kept = this.#artifacts.get(id);
        kept && isBehind(kept) && !this.#full;
        kept = this.#artifacts.get(id)
      ) {
        await this.#send(kept);
      }
    }
  }

  async #send({ artifact, sent, lastChunk }: Tracked): Promise<void> {
    const from = sent === "none" ? 0 : sent;
    const until = from + fitting(artifact.parts.slice(from));
    const whole = until === artifact.parts.length;
    const outcome = await this.#port.artifact({
      artifact: { ...artifact, parts: artifact.parts.slice(from, until) },
      append: sent !== "none",
      lastChunk: lastChunk && whole,
    });
    if (outcome === "full") this.#full = true;
    if (outcome === "too_large") throw new OutputTooLargeError("the artifacts are too large");
    const now = this.#artifacts.get(artifact.artifactId);
    if (!now) return;
    if (outcome !== "kept") return;
    // The artifact may have grown meanwhile, or been replaced.
    const grew =
      now.sent === sent && sameJson(now.artifact.parts.slice(0, until), artifact.parts.slice(0, until));
    if (grew) now.sent = until;
  }
}

function isBehind({ artifact, sent }: Tracked): boolean {
  return sent === "none" || sent < artifact.parts.length;
}

/** How many parts fit into one call; at least one. */
function fitting(parts: Artifact["parts"]): number {
  let bytes = 0;
  const over = parts.findIndex((part, index) => {
    bytes += sizeOf(part);
    return bytes > CALL_BYTES && index > 0;
  });
  return over === -1 ? parts.length : over;
}
