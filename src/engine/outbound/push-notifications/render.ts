/** The types of the renderer of push notifications, which is in `doors/a2a`. */
import type { Entry } from "../../../events/entry.ts";
import type { StoredDelegation } from "../../../lifecycle/stored-delegation.ts";
import type { PushVersion } from "../../../schema/push-config.ts";

export interface RenderedPush {
  readonly contentType: string;
  /** One for each update; an event may cause several, or none. */
  readonly bodies: readonly string[];
}

/** Data that a renderer may need besides the event; read on demand. */
export interface PushContext {
  /** The delegation as it is now, later than the event; null when it is deleted. */
  readonly record: () => Promise<StoredDelegation | null>;
  /** The delegation's earlier events, oldest first, without the bodies of artifacts. */
  readonly before: () => AsyncIterable<Entry>;
}

/** Renders an event in the form of A2A. */
export type RenderPush = (entry: Entry, version: PushVersion, context: PushContext) => Promise<RenderedPush>;
