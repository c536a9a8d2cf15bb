/**
 * Calls one A2A server, version 1.0 or 0.3, over JSON-RPC or HTTP+JSON, as its agent card says. Limit: a server that
 * offers only gRPC is refused.
 */
import { SendMessageRequest } from "@a2a-js/sdk";
import {
  type Client,
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from "@a2a-js/sdk/client";
import type { Message } from "../schema/a2a.ts";
import { addressOf, describing } from "../util/foreign-answer.ts";
import { onAbort, TimeLimit } from "../util/timing.ts";
import { pause, triesFor } from "./backoff.ts";
import { callFetch } from "./call-fetch.ts";
import { cardError, cardFetch, readCard } from "./card.ts";
import { type FetchFunction, guardedFetch } from "./guarded-fetch.ts";
import { isSameMessage } from "./messages.ts";
import { RemoteError, toRemoteError } from "./remote-error.ts";
import { type RemoteTask, toMessage, toTask, toUpdate, type Update } from "./updates.ts";

export interface RemoteOptions {
  /** URL of the server, or of its agent card if it ends in `.json`. */
  readonly url: string;
  readonly fetch?: FetchFunction | undefined;
  /** Sent with every request to the URL's origin, and to no other origin. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** How messages name an address of the server. Default: without its query. */
  readonly nameOf?: ((url: URL) => string) | undefined;
  /** The time limit in milliseconds of all calls but the sending of a message. Default 30 000. */
  readonly callMs?: number | undefined;
}

const CALL_MS = 30_000;
/** The time limit of a message's first answer, which may be an agent's whole reply. */
const SEND_MS = 270_000;
/** After this time without an event, the task is read and the stream reopened, because the stream may be dead. */
const SILENT_MS = 120_000;
/** The card is read again after this time, and after each failure to reach the server. */
const CARD_MS = 300_000;
const LISTED = 50;
const CANCEL_TRIES = 3;

export class Remote {
  readonly #options: RemoteOptions;
  #session: { readonly promise: Promise<Session>; readonly until: number } | undefined;
  readonly #callMs: number;

  constructor(options: RemoteOptions) {
    this.#options = options;
    this.#callMs = options.callMs ?? CALL_MS;
  }

  /** Reads the card, unless it was read recently. Throws {@link RemoteError}. */
  async open(signal: AbortSignal): Promise<Session> {
    signal.throwIfAborted();
    const now = performance.now();
    if (this.#session === undefined || this.#session.until < now) {
      this.#session = { promise: this.#connect(), until: now + CARD_MS };
    }
    const { promise } = this.#session;
    try {
      return await within(signal, this.#callMs, (inner) => unlessAborted(promise, inner));
    } catch (error) {
      this.forget();
      throw error;
    }
  }

  /** Cancels a task. After a few failed tries, it calls `note`. Never throws. */
  async cancel(task: string, note: (what: string) => void): Promise<void> {
    const { signal } = new AbortController();
    for (let failures = 0; ; failures += 1) {
      try {
        const session = await this.open(signal);
        return await session.cancel(task, signal);
      } catch (error) {
        const { kind, message } = toRemoteError(error);
        // The task has ended, or cannot be canceled.
        if (kind === "failed" || kind === "gone") return;
        if (failures === CANCEL_TRIES || triesFor(kind) === 0)
          return note(`the task was not canceled: ${message}`);
        await pause(failures, signal);
      }
    }
  }

  /** The next call reads the card again. */
  forget(): void {
    this.#session = undefined;
  }

  async #connect(): Promise<Session> {
    const { url, headers = {} } = this.#options;
    const { origin } = new URL(url);
    const guarded = guardedFetch({ fetch: this.#options.fetch ?? globalThis.fetch, origin, headers });
    const { nameOf } = this.#options;
    const describe = describing({
      headers,
      nameOf: nameOf ?? addressOf,
      // Who hides the server's address hides where it leads, too.
      namesTargets: nameOf === undefined,
    });
    const fetchCard = cardFetch(guarded, describe);
    const fetchImpl: typeof guarded = (input, init) => {
      return fetchCard(input, { signal: AbortSignal.timeout(this.#callMs), ...init });
    };
    const legacyCompat = { enabled: true };
    const cardResolver = new DefaultAgentCardResolver({ fetchImpl, legacyCompat });
    const fetch = callFetch(guarded, describe);
    const factory = new ClientFactory({
      transports: [
        new JsonRpcTransportFactory({ fetchImpl: fetch, legacyCompat }),
        new RestTransportFactory({ fetchImpl: fetch, legacyCompat }),
      ],
      cardResolver,
      clientConfig: { polling: true },
    });
    try {
      const card = await readCard(url, (base, path) => cardResolver.resolve(base, path));
      const client = await factory.createFromAgentCard(card);
      return new Session(client, card.capabilities?.streaming === true, this.#callMs);
    } catch (error) {
      throw cardError(error, (this.#options.nameOf ?? addressOf)(new URL(url)));
    }
  }
}

export class Session {
  readonly streaming: boolean;
  readonly #client: Client;
  readonly #callMs: number;

  constructor(client: Client, streaming: boolean, callMs: number) {
    this.#client = client;
    this.streaming = streaming;
    this.#callMs = callMs;
  }

  /** Sends a message and yields its updates, until the server ends the stream or the connection breaks. */
  async *send(message: Message, signal: AbortSignal): AsyncGenerator<Update, void> {
    const request = toRequest(message);
    if (this.streaming) {
      yield* updates(signal, (inner) => this.#client.sendMessageStream(request, { signal: inner }), SEND_MS);
      return;
    }
    const result = await within(signal, SEND_MS, (inner) =>
      this.#client.sendMessage(request, { signal: inner }),
    );
    if ("messageId" in result) yield { kind: "message", message: toMessage(result, "reply") };
    else yield { kind: "task", task: toTask(result) };
  }

  /** Sends a follow-up. Its effect shows on the task. */
  async sendFollowUp(message: Message, signal: AbortSignal): Promise<void> {
    const request = toRequest(message);
    await this.#call(signal, (inner) => this.#client.sendMessage(request, { signal: inner }));
  }

  subscribe(id: string, signal: AbortSignal): AsyncGenerator<Update, void> {
    return updates(signal, (inner) => this.#client.resubscribeTask({ tenant: "", id }, { signal: inner }));
  }

  async get(id: string, signal: AbortSignal): Promise<RemoteTask> {
    return toTask(
      await this.#call(signal, (inner) =>
        this.#client.getTask({ tenant: "", id, historyLength: undefined }, { signal: inner }),
      ),
    );
  }

  async cancel(id: string, signal: AbortSignal): Promise<void> {
    await this.#call(signal, (inner) =>
      this.#client.cancelTask({ tenant: "", id, metadata: undefined }, { signal: inner }),
    );
  }

  /** The task that this message created, if the server can list its tasks. */
  async find(message: Message, signal: AbortSignal): Promise<RemoteTask | undefined> {
    const { tasks } = await this.#call(signal, (inner) =>
      this.#client.listTasks(
        {
          tenant: "",
          contextId: message.contextId ?? "",
          status: 0,
          pageSize: LISTED,
          pageToken: "",
          historyLength: undefined,
          statusTimestampAfter: undefined,
          includeArtifacts: true,
        },
        { signal: inner },
      ),
    );
    return tasks.map(toTask).find(({ history }) => history.some((one) => isSameMessage(one, message)));
  }

  #call<T>(signal: AbortSignal, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return within(signal, this.#callMs, call);
  }
}

function toRequest(message: Message): SendMessageRequest {
  return SendMessageRequest.fromJSON({ message, configuration: { returnImmediately: true } });
}

async function* updates(
  signal: AbortSignal,
  open: (signal: AbortSignal) => AsyncGenerator<Parameters<typeof toUpdate>[0], void>,
  firstMs = SILENT_MS,
): AsyncGenerator<Update, void> {
  const limit = new TimeLimit(firstMs, signal);
  let isFirst = true;
  try {
    for await (const event of open(limit.signal)) {
      limit.restart(SILENT_MS);
      isFirst = false;
      const update = toUpdate(event);
      if (update) yield update;
    }
  } catch (error) {
    signal.throwIfAborted();
    if (limit.signal.aborted && isFirst && firstMs === SEND_MS) throw silent();
    if (limit.signal.aborted) return;
    throw toRemoteError(error);
  } finally {
    limit.close();
  }
}

const silent = (): RemoteError => new RemoteError("away", "the A2A server does not answer");

async function within<T>(
  signal: AbortSignal,
  ms: number,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = new TimeLimit(ms, signal);
  try {
    limit.signal.throwIfAborted();
    return await call(limit.signal);
  } catch (error) {
    signal.throwIfAborted();
    if (limit.signal.aborted) throw silent();
    throw toRemoteError(error);
  } finally {
    limit.close();
  }
}

/** Rejects when the signal aborts; the shared promise continues for the other callers. */
function unlessAborted<T>(shared: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const unsubscribe = onAbort(signal, () => reject(signal.reason));
    shared.then(resolve, reject).finally(unsubscribe);
  });
}
