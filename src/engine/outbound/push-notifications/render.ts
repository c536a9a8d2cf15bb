/** What a renderer of push notifications gets and returns. The renderer itself is in `doors/a2a`, which knows A2A. */
import type { Entry } from "../../../events/entry.ts";
import type { StoredDelegation } from "../../../lifecycle/record.ts";
import type { PushVersion } from "../../../schema/push.ts";

export interface RenderedPush {
  readonly contentType: string;
  /** One for each update; an event may be several, or none. */
  readonly bodies: readonly string[];
}

/** What an event alone does not say; read when it is asked for. */
export interface PushContext {
  /** The delegation as it stands now, later than the event; null when it is forgotten. */
  readonly record: () => Promise<StoredDelegation | null>;
  /** Its events before this one, the first one first, without the bodies of artifacts. */
  readonly before: () => AsyncIterable<Entry>;
}

/** An event in the words of A2A. */
export type RenderPush = (entry: Entry, version: PushVersion, context: PushContext) => Promise<RenderedPush>;
