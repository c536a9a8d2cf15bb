/**
 * Bridges a client on stdio to the broker's `/mcp`: sends each message by POST and writes the responses, including
 * progress, to stdout. Its only state is the session of an older client; it reopens a session that the broker has lost.
 * A message that may have arrived is never sent twice; the client gets an error instead.
 */

import { addAbortSignal, type Readable } from "node:stream";
import { connectionError } from "../../client/connection-errors.ts";
import { ErrandApiError, localError } from "../../client/errors.ts";
import { KnownBroker } from "../../client/known-broker.ts";
import { notTheBroker } from "../../client/not-the-broker.ts";
import { sleep, TimeLimit } from "../../util/timing.ts";
import type { Target } from "../discover.ts";
import { type KnownTarget, post, reading } from "./post.ts";
import {
  formatMessage,
  type Id,
  lines,
  type Message,
  messagesOf,
  mirrorHeaders,
  parseMessage,
  toErrorMessage,
  versionOf,
  withTokenRecovery,
} from "./wire.ts";

export interface BridgeOptions {
  /** Called for each message: after a restart the broker may have another URL. */
  readonly target: () => Promise<Target>;
  /** Writes one line to the client. */
  readonly send: (line: string) => Promise<void>;
  /** Writes a log line. */
  readonly say: (line: string) => void;
}

/** The broker responds within a minute, and sends something on a stream every 15 s. */
const SILENCE_MS = 90_000;
const NOTIFICATION_MS = 10_000;
/** Clients kill this program two seconds after they close its stdin. */
const GRACE_MS = 1_000;

type Request = Message & { readonly id: Id; readonly method: string };
const isRequest = (message: Message): message is Request =>
  message.method !== undefined && message.id !== undefined && message.id !== null;

interface Session {
  readonly id: string;
  readonly version: string | undefined;
}

const keyOf = (id: unknown): string => JSON.stringify(id) ?? "";

export class Bridge {
  readonly #options: BridgeOptions;
  readonly #inProgress = new Map<string, { readonly controller: AbortController; readonly isOld: boolean }>();
  readonly #answering = new Set<Promise<void>>();
  #session: Session | undefined;
  /** The client's `initialize` request, which opened the session. */
  #opening: Request | undefined;
  #reopening: Promise<void> | undefined;
  #reopened = 0;
  #isAway = false;
  /** The broker at the URL of the last call. */
  #broker: { readonly url: string; readonly known: KnownBroker } | undefined;

  constructor(options: BridgeOptions) {
    this.#options = options;
  }

  /** Runs until the input ends or the signal aborts. Requests in progress then get a moment to finish. */
  async run(input: Readable, signal: AbortSignal): Promise<void> {
    addAbortSignal(signal, input);
    const broken = (error: unknown) => void input.destroy(error instanceof Error ? error : undefined);
    try {
      for await (const line of lines(input)) if (line.trim() !== "") await this.#receive(line, broken);
    } finally {
      await Promise.race([Promise.all(this.#answering), sleep(signal.aborted ? 0 : GRACE_MS)]);
      for (const { controller } of this.#inProgress.values()) controller.abort();
    }
  }

  async #receive(line: string, broken: (error: unknown) => void): Promise<void> {
    const message = parseMessage(line);
    // MCP allows no request with the id null.
    const hasNullId = message?.method !== undefined && message.id === null;
    if (message === undefined || hasNullId) return this.#refuse(line);
    if (!isRequest(message)) return this.#forward(message, line);
    const answering: Promise<void> = this.#answer(message, line)
      .catch(broken)
      .finally(() => this.#answering.delete(answering));
    this.#answering.add(answering);
    // Later messages belong to the session that this request opens.
    if (message.method === "initialize") await answering;
  }

  #refuse(line: string): Promise<void> {
    const isJson = canParse(line);
    const error = localError({
      code: isJson ? "invalid_request" : "invalid_json",
      category: "PROTOCOL",
      detail: isJson ? "A line on stdin is not a JSON-RPC message" : "A line on stdin is not JSON",
      recovery: "Send one JSON-RPC message per line.",
    });
    return this.#options.send(JSON.stringify(toErrorMessage(null, error)));
  }

  async #answer(request: Request, line: string): Promise<void> {
    const controller = new AbortController();
    const key = keyOf(request.id);
    this.#inProgress.set(key, { controller, isOld: versionOf(request) === undefined });
    try {
      await this.#ask(request, line, controller.signal);
      this.#isAway = false;
    } catch (error) {
      // A canceled request gets no response.
      if (controller.signal.aborted) return;
      if (!(error instanceof ErrandApiError)) throw error;
      this.#report(error);
      await this.#options.send(formatMessage(toErrorMessage(request.id, error)));
    } finally {
      this.#inProgress.delete(key);
    }
  }

  async #ask(request: Request, line: string, signal: AbortSignal): Promise<void> {
    for (let isAgain = false; ; isAgain = true) {
      const session = this.#session;
      const isLost = await this.#exchange(request, line, signal, (response) => {
        const isUnknownSession = response.status === 404 && versionOf(request) === undefined;
        return isUnknownSession && session !== undefined && request.method !== "initialize" && !isAgain;
      });
      if (!isLost || session === undefined) return;
      // The broker refused the request only because of its session, so sending it again is safe.
      await this.#reopen(session);
    }
  }

  /** Sends one POST and passes the response to the client; returns true if `isLost` says that the session is lost. */
  async #exchange(
    request: Request,
    line: string,
    signal: AbortSignal | undefined,
    isLost: (response: Response) => boolean,
    send: (line: string) => Promise<void> = this.#options.send,
  ): Promise<boolean> {
    const target = await this.#target();
    const { url, token, known } = target;
    const limit = new TimeLimit(SILENCE_MS, signal);
    try {
      const response = await post(target, this.#headers(request), line, limit);
      if (isLost(response)) {
        await response.body?.cancel();
        return true;
      }
      if (response.status === 401) this.#options.say("the broker rejected the token; check ERRAND_TOKEN.");
      let isAnswered = false;
      const parts = messagesOf(response, () => limit.restart(SILENCE_MS));
      for await (const text of reading(parts, url, limit)) {
        const part = parseMessage(text);
        if (part === undefined) {
          const why = "not an MCP message";
          throw notTheBroker({ url, response, text, known, token, why, mayComeBack: true });
        }
        const isAnswer = part.method === undefined;
        if (isAnswer && request.method === "initialize") this.#keepSession(request, response, part);
        // The broker's refusal of a malformed request has no id.
        const lacksId = isAnswer && part.id !== request.id;
        const refused = response.status === 401 ? withTokenRecovery(part) : undefined;
        const changed = refused ?? (lacksId ? part : undefined);
        await send(changed ? formatMessage({ ...changed, id: request.id }) : text.replace(/\r?\n/g, " "));
        isAnswered ||= isAnswer;
      }
      if (!isAnswered) throw connectionError(url, new Error("it ended without a response"), true);
      return false;
    } finally {
      limit.close();
    }
  }

  async #target(): Promise<KnownTarget> {
    const target = await this.#options.target();
    if (this.#broker?.url !== target.url) this.#broker = { url: target.url, known: new KnownBroker() };
    return { ...target, known: this.#broker.known };
  }

  #headers(message: Message): Record<string, string> {
    const version = versionOf(message);
    if (version !== undefined) return mirrorHeaders(version, message);
    if (message.method === "initialize" || this.#session === undefined) return {};
    const { id, version: agreed } = this.#session;
    return { "mcp-session-id": id, ...(agreed !== undefined && { "mcp-protocol-version": agreed }) };
  }

  #keepSession(request: Request, response: Response, answer: Message): void {
    const id = response.headers.get("mcp-session-id");
    if (id === null) return;
    const { result } = answer;
    const version =
      typeof result === "object" && result !== null && "protocolVersion" in result
        ? result.protocolVersion
        : undefined;
    this.#session = { id, version: typeof version === "string" ? version : undefined };
    this.#opening = request;
  }

  /** Repeats the handshake, once for all requests that found the session lost. */
  #reopen(lost: Session): Promise<void> {
    if (this.#session !== lost || this.#opening === undefined) return Promise.resolve();
    const opening = { ...this.#opening, id: `errand-mcp-${this.#reopened++}` };
    this.#reopening ??= (async () => {
      const line = formatMessage(opening);
      await this.#exchange(
        opening,
        line,
        undefined,
        () => false,
        async () => undefined,
      );
      const ready = { jsonrpc: "2.0" as const, method: "notifications/initialized" };
      await this.#forward(ready, JSON.stringify(ready));
    })().finally(() => {
      this.#reopening = undefined;
    });
    return this.#reopening;
  }

  /** Forwards a notification, or a response to a request of the broker. Neither gets a response. */
  async #forward(message: Message, line: string): Promise<void> {
    const isCancel = message.method === "notifications/cancelled";
    const canceled = isCancel ? this.#inProgress.get(keyOf(message.params?.requestId)) : undefined;
    try {
      // Since protocol revision 2026-07-28, a request is canceled by closing its stream.
      if (!isCancel || canceled?.isOld) await this.#notify(message, line);
    } catch (error) {
      if (!(error instanceof ErrandApiError)) throw error;
      this.#report(error);
    } finally {
      canceled?.controller.abort();
    }
  }

  async #notify(message: Message, line: string): Promise<void> {
    const limit = new TimeLimit(NOTIFICATION_MS);
    try {
      const response = await post(await this.#target(), this.#headers(message), line, limit);
      await response.body?.cancel();
    } finally {
      limit.close();
    }
  }

  /** Logs an unavailable broker once per outage. */
  #report({ message, category }: ErrandApiError): void {
    if (category === "TRANSPORT" && this.#isAway) return;
    this.#isAway = category === "TRANSPORT";
    this.#options.say(message);
  }
}

function canParse(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
