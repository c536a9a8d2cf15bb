/**
 * The artifacts of a remote task, and what the broker has of them. Chunks that come close together go as one, what came
 * by a snapshot as well is not sent twice. Limit: what outgrows a delegation ends the run.
 */
import type { Artifact } from "../schema/a2a.ts";
import { LIMITS } from "../schema/limits.ts";
import type { RelayPort } from "./port.ts";

/** At most so often, for the events of a delegation are counted. */
const EVERY_MS = 250;
/** Of what goes at once: well below the least body limit that a broker is run with. A part is not divided. */
const CALL_BYTES = 512 * 1024;

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
      const bytes = known.bytes + sizeOf(artifact.parts);
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
      this.#next(() => this.#round()).catch(this.#onError);
    }, EVERY_MS);
  }

  /** Sends all that the broker lacks. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    return this.#next(() => this.#flush());
  }

  /** One call after the other. */
  #next(work: () => Promise<void>): Promise<void> {
    const sent = this.#sending.then(work);
    this.#sending = sent.catch(() => undefined);
    return sent;
  }

  /** Once each; what comes meanwhile has its turn with the next. */
  async #round(): Promise<void> {
    for (const id of [...this.#kept.keys()]) {
      const kept = this.#kept.get(id);
      if (kept && isBehind(kept) && !this.#full) await this.#send(kept);
    }
    if (!this.#full && [...this.#kept.values()].some(isBehind)) this.#flushSoon();
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
    const from = sent === "none" ? 0 : sent;
    const until = from + fitting(artifact.parts.slice(from));
    const whole = until === artifact.parts.length;
    const outcome = await this.#port.artifact({
      artifact: { ...artifact, parts: artifact.parts.slice(from, until) },
      append: sent !== "none",
      lastChunk: lastChunk && whole,
    });
    if (outcome === "full") this.#full = true;
    if (outcome === "too_large") throw new TooLargeError("the artifacts are too large");
    const now = this.#kept.get(artifact.artifactId);
    if (!now) return;
    if (outcome !== "kept") return;
    // More may have come meanwhile; a replacement has begun anew.
    const grew =
      now.sent === sent && sameJson(now.artifact.parts.slice(0, until), artifact.parts.slice(0, until));
    if (grew) now.sent = until;
  }
}

function isBehind({ artifact, sent }: Kept): boolean {
  return sent === "none" || sent < artifact.parts.length;
}

/** How many parts go at once; one at least. */
function fitting(parts: Artifact["parts"]): number {
  let bytes = 0;
  const over = parts.findIndex((part, index) => {
    bytes += sizeOf(part);
    return bytes > CALL_BYTES && index > 0;
  });
  return over === -1 ? parts.length : over;
}
