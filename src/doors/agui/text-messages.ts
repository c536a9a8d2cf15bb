/** The text messages of a run that have begun and not ended. A message that ended may begin again, to be continued. */
import type { AgUiEvent } from "../../schema/ag-ui-event.ts";

interface TextMessage {
  readonly id: string;
  readonly content: string;
  readonly role: "assistant";
  readonly metadata: Record<string, unknown>;
}

export class TextMessages {
  readonly #open = new Set<string>();

  /** Adds the content to the message; `isWhole`: nothing follows. */
  *add({ id, content, role, metadata }: TextMessage, isWhole: boolean): Generator<AgUiEvent> {
    if (!this.#open.has(id)) yield { type: "TEXT_MESSAGE_START", messageId: id, role, metadata };
    this.#open.add(id);
    yield { type: "TEXT_MESSAGE_CONTENT", messageId: id, delta: content };
    if (isWhole) yield* this.close(id);
  }

  *close(id: string): Generator<AgUiEvent> {
    if (this.#open.delete(id)) yield { type: "TEXT_MESSAGE_END", messageId: id };
  }

  *closeAll(): Generator<AgUiEvent> {
    for (const id of [...this.#open]) yield* this.close(id);
  }
}
