/**
 * Which artifacts a stream's reader has by now, so that the end tells what is missing and nothing twice. Limit: keeps
 * hashes, not bodies; one for each stream.
 */
import { createHash, type Hash } from "node:crypto";
import type { Artifact } from "../../../schema/a2a.ts";

export class Told {
  readonly #hashes = new Map<string, Hash>();

  constructor(artifacts: readonly Artifact[]) {
    for (const artifact of artifacts) this.note(artifact, false);
  }

  note({ artifactId, parts }: Artifact, append: boolean): void {
    const hash = (append ? this.#hashes.get(artifactId) : undefined) ?? createHash("sha256");
    for (const part of parts) hash.update(`${JSON.stringify(part)}\n`);
    this.#hashes.set(artifactId, hash);
  }

  /** Whether the reader has this artifact just so. */
  has(artifact: Artifact): boolean {
    const whole = new Told([artifact]).#hashes.get(artifact.artifactId);
    const known = this.#hashes.get(artifact.artifactId);
    return known !== undefined && whole !== undefined && digest(known) === digest(whole);
  }

  /** Forgets them all; returns their ids. */
  drop(): string[] {
    const ids = [...this.#hashes.keys()];
    this.#hashes.clear();
    return ids;
  }
}

const digest = (hash: Hash): string => hash.copy().digest("base64");
