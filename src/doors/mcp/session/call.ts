/**
 * One HTTP request of a session: its calls, and the stream of their responses. The ids of its own requests to the client
 * name it, so that an answer, which is an HTTP request of its own, finds it.
 */
import {
  isJSONRPCNotification,
  isJSONRPCRequest,
  type JSONRPCMessage,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { randomId } from "../../../redis/shards.ts";

type SendOptions = Parameters<WebStandardStreamableHTTPServerTransport["send"]>[1];

export class Call extends WebStandardStreamableHTTPServerTransport {
  readonly #name = randomId(10);
  readonly #waiting: Set<unknown>;
  readonly #onEnd: () => void;

  /** `ids`: those of its calls. `onEnd` is called when none of them waits for a response. */
  constructor(sessionId: string, isNew: boolean, ids: readonly unknown[], onEnd: () => void) {
    super(isNew ? { sessionIdGenerator: () => sessionId } : {});
    if (!isNew) this.sessionId = sessionId;
    this.#waiting = new Set(ids);
    this.#onEnd = onEnd;
  }

  override async send(message: JSONRPCMessage, options?: SendOptions): Promise<void> {
    if (isJSONRPCRequest(message)) return super.send({ ...message, id: this.#idOf(message.id) }, options);
    if (isJSONRPCNotification(message)) {
      const { method, params } = message;
      if (method !== CANCEL) return super.send(message, options);
      return super.send(
        { ...message, params: { ...params, requestId: this.#idOf(params?.requestId) } },
        options,
      );
    }
    this.#ended(message.id);
    return super.send(message, options);
  }

  /** Passes on an answer of the client, or the cancellation of a call. Returns whether it belongs here. */
  receive(message: JSONRPCMessage): boolean {
    if (isJSONRPCRequest(message)) return false;
    if (isJSONRPCNotification(message)) {
      const id = message.params?.requestId;
      if (!this.#waiting.has(id)) return false;
      this.onmessage?.(message);
      this.#ended(id);
      return true;
    }
    const [name, id] = String(message.id).split(".");
    if (name !== this.#name) return false;
    this.onmessage?.({ ...message, id: Number(id) });
    return true;
  }

  #idOf(id: unknown): string {
    return `${this.#name}.${id}`;
  }

  #ended(id: unknown): void {
    this.#waiting.delete(id);
    if (this.#waiting.size === 0) this.#onEnd();
  }
}

export const CANCEL = "notifications/cancelled";
