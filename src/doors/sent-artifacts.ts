/**
 * The artifacts that a stream already sent, so that its end sends only what is missing. Keeps hashes, not bodies.
 */
import { createHash, type Hash } from "node:crypto";
import type { Artifact } from "../schema/a2a.ts";

export class SentArtifacts {
  readonly #hashes = new Map<string, Hash>();

  constructor(artifacts: readonly Artifact[]) {
    for (const artifact of artifacts) this.add(artifact, false);
  }

  add({ artifactId, parts }: Artifact, append: boolean): void {
    const hash = (append ? this.#hashes.get(artifactId) : undefined) ?? createHash("sha256");
    for (const part of parts) hash.update(`${JSON.stringify(part)}\n`);
    this.#hashes.set(artifactId, hash);
  }

  /** Whether this artifact was sent with exactly this content. */
  has(artifact: Artifact): boolean {
    const expected = new SentArtifacts([artifact]).#hashes.get(artifact.artifactId);
    const sent = this.#hashes.get(artifact.artifactId);
    return sent !== undefined && expected !== undefined && digest(sent) === digest(expected);
  }

  /** Removes all; returns their ids. */
  clear(): string[] {
    const ids = [...this.#hashes.keys()];
    this.#hashes.clear();
    return ids;
  }
}

const digest = (hash: Hash): string => hash.copy().digest("base64");
