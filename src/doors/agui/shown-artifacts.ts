/**
 * The artifacts of a run as its client has them: their order in the state, and the texts of their messages. Keeps hashes,
 * not bodies.
 */
import { createHash, type Hash } from "node:crypto";
import type { Artifact } from "../../schema/a2a.ts";
import { SentArtifacts } from "../sent-artifacts.ts";
import { artifactText } from "./messages.ts";

interface Shown {
  readonly index: number;
  /** The text of its message; absent if it has none. */
  readonly text: { readonly length: number; readonly hash: Hash } | undefined;
}

export class ShownArtifacts {
  readonly #shown = new Map<string, Shown>();
  readonly #sent = new SentArtifacts([]);

  get size(): number {
    return this.#shown.size;
  }

  has(artifactId: string): boolean {
    return this.#shown.has(artifactId);
  }

  /** Replaces all. */
  reset(artifacts: readonly Artifact[]): void {
    this.#shown.clear();
    this.#sent.clear();
    for (const artifact of artifacts) this.add(artifact, false);
  }

  /**
   * Whether the client can get this artifact as an addition: no text that it has must change. (AG-UI has no event that
   * replaces the text of one message.)
   */
  continues(artifact: Artifact, append: boolean): boolean {
    const { text } = this.#shown.get(artifact.artifactId) ?? {};
    if (append || text === undefined) return true;
    const whole = artifactText(artifact);
    if (whole === undefined || whole.length < text.length) return false;
    return digest(hashOf(whole.slice(0, text.length))) === digest(text.hash);
  }

  /** Adds an artifact that {@link continues}. `text`: what its message gets; `before`: how it was shown before. */
  add(artifact: Artifact, append: boolean) {
    const { artifactId } = artifact;
    const before = this.#shown.get(artifactId);
    const sent = artifactText(artifact);
    const text = append ? sent : sent?.slice(before?.text?.length ?? 0);
    const known = before?.text;
    const hash = (known?.hash ?? createHash("sha256")).update(text ?? "");
    const length = (known?.length ?? 0) + (text?.length ?? 0);
    const index = before?.index ?? this.#shown.size;
    this.#shown.set(artifactId, {
      index,
      text: text === undefined && known === undefined ? undefined : { length, hash },
    });
    this.#sent.add(artifact, append);
    return { index, text, before };
  }

  /** Whether the client has no artifact that differs from these. It may lack some. */
  areAmong(artifacts: readonly Artifact[]): boolean {
    const shown = artifacts.filter(({ artifactId }) => this.#shown.has(artifactId));
    return shown.length === this.#shown.size && shown.every((artifact) => this.#sent.has(artifact));
  }
}

const hashOf = (text: string): Hash => createHash("sha256").update(text);
const digest = (hash: Hash): string => hash.copy().digest("base64");
