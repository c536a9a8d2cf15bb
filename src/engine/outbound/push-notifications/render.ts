/** What a renderer of push notifications gets and returns. The renderer itself is in `doors/a2a`, which knows A2A. */
import type { Entry } from "../../../events/entry.ts";
import type { StoredDelegation } from "../../../lifecycle/record.ts";
import type { PushVersion } from "../../../schema/push.ts";

export interface RenderedPush {
  readonly contentType: string;
  /** One for each update; an event may cause several, or none. */
  readonly bodies: readonly string[];
}

/** What an event alone does not contain; read on demand. */
export interface PushContext {
  /** The delegation as it is now, later than the event; null when it is deleted. */
  readonly record: () => Promise<StoredDelegation | null>;
  /** Its events before this one, the first one first, without the bodies of artifacts. */
  readonly before: () => AsyncIterable<Entry>;
}

/** Renders an event in the form of A2A. */
export type RenderPush = (entry: Entry, version: PushVersion, context: PushContext) => Promise<RenderedPush>;
