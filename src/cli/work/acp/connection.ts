/**
 * The connection to one ACP agent. Updates are delivered in the order in which the agent sent them, and before the answer
 * to the prompt that they belong to.
 */
import type { Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";
import * as z from "zod";
import { AgentRefusedError, ProtocolError } from "./errors.ts";
import {
  type Elicitation,
  elicitationSchema,
  type Permission,
  permissionSchema,
  type Update,
  updateParamsSchema,
  updateSchema,
} from "./schemas.ts";

export const METHODS = acp.methods.agent;

export type PermissionAnswer = acp.RequestPermissionResponse;
export type ElicitationAnswer =
  | { readonly action: "accept"; readonly content?: Record<string, acp.ElicitationContentValue> }
  | { readonly action: "decline" }
  | { readonly action: "cancel" };

/** What one conversation does with the agent's messages. */
export interface SessionListener {
  readonly onUpdate: (update: Update) => void;
  readonly onPermission: (permission: Permission) => Promise<PermissionAnswer>;
  readonly onElicitation: (elicitation: Elicitation) => Promise<ElicitationAnswer>;
}

const idSchema = z.union([z.string(), z.number(), z.null()]);
const callSchema = z.object({ method: z.string(), params: z.unknown().optional() });
type Id = z.infer<typeof idSchema>;

export class Connection {
  readonly #listeners = new Map<string, SessionListener>();
  /** The requests that have no answer yet. */
  readonly #waiting = new Set<Id>();
  readonly #onOddity: (text: string) => void;
  readonly #connection: acp.ClientConnection;
  #input: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>> | undefined;

  constructor(stdin: Writable, onOddity: (text: string) => void) {
    this.#onOddity = onOddity;
    const input = new ReadableStream<Uint8Array<ArrayBuffer>>({
      start: (controller) => {
        this.#input = controller;
      },
    });
    const stream = acp.ndJsonStream(asStream(stdin), input);
    this.#connection = acp
      .client({ name: "errand" })
      .onRequest(acp.methods.client.session.requestPermission, permissionSchema, ({ params }) =>
        this.#listenerOf(params.sessionId).onPermission(params),
      )
      .onRequest(acp.methods.client.elicitation.create, elicitationSchema, ({ params }) =>
        this.#listenerOf(params.sessionId).onElicitation(params),
      )
      .onNotification("*", () => undefined)
      .connect({ readable: stream.readable, writable: this.#remembering(stream.writable) });
  }

  /** Resolves when nothing can be sent or received any more. */
  get closed(): Promise<void> {
    return this.#connection.closed;
  }

  close(error?: Error): void {
    this.#connection.close(error);
  }

  /** One line from the agent. */
  receive(line: Uint8Array<ArrayBuffer>, frame: object): void {
    if (this.#connection.signal.aborted) return;
    if ("method" in frame && !("id" in frame) && frame.method === acp.methods.client.session.update)
      this.#update(frame);
    else if (
      !("method" in frame) &&
      "id" in frame &&
      !this.#waiting.delete(idSchema.catch(null).parse(frame.id))
    )
      this.#onOddity("it answered a request twice, or one that it never got; that answer is ignored");
    else this.#input?.enqueue(line);
  }

  /** What the agent sends about a session is ignored while nobody listens. */
  listen(sessionId: string, listener: SessionListener): () => void {
    this.#listeners.set(sessionId, listener);
    return () => {
      if (this.#listeners.get(sessionId) === listener) this.#listeners.delete(sessionId);
    };
  }

  async request<T>(schema: z.ZodType<T>, method: string, params: object): Promise<T> {
    let answer: unknown;
    try {
      answer = await this.#connection.agent.request<unknown, object>(method, params);
    } catch (error) {
      if (error instanceof acp.RequestError)
        throw new AgentRefusedError(error.code, error.message, error.data);
      throw error;
    }
    const checked = schema.safeParse(answer ?? {});
    if (checked.success) return checked.data;
    throw new ProtocolError(`its answer to ${method} is not one of the protocol`);
  }

  cancel(sessionId: string): void {
    void this.#connection.agent.notify(METHODS.session.cancel, { sessionId }).catch(() => undefined);
  }

  #update(frame: object): void {
    const params = updateParamsSchema.safeParse(callSchema.safeParse(frame).data?.params).data;
    if (params === undefined) {
      this.#onOddity("it sent an update that is not one of the protocol");
      return;
    }
    // Kinds that the worker does not know are left out.
    const update = updateSchema.safeParse(params.update).data;
    if (update !== undefined) this.#listeners.get(params.sessionId)?.onUpdate(update);
  }

  #listenerOf(sessionId: string | null | undefined): SessionListener {
    // An elicitation may belong to no session.
    const only = this.#listeners.size === 1 ? [...this.#listeners.values()][0] : undefined;
    const listener = sessionId == null ? only : this.#listeners.get(sessionId);
    if (listener === undefined)
      throw acp.RequestError.invalidParams(undefined, "no prompt runs in this session");
    return listener;
  }

  #remembering(writable: WritableStream<acp.AnyMessage>): WritableStream<acp.AnyMessage> {
    return new WritableStream({
      write: async (message) => {
        if ("method" in message && "id" in message) this.#waiting.add(message.id);
        const writer = writable.getWriter();
        try {
          await writer.write(message);
        } finally {
          writer.releaseLock();
        }
      },
    });
  }
}

const asStream = (stdin: Writable): WritableStream<Uint8Array> =>
  new WritableStream({
    write: (chunk) =>
      new Promise((resolve, reject) => {
        stdin.write(chunk, (error) => (error ? reject(error) : resolve()));
      }),
  });
