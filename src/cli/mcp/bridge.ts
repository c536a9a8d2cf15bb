/**
 * Between a client on stdio and the broker's `/mcp`: each message goes there as a POST, and what comes back goes to
 * stdout, progress included. It keeps nothing but the session of an older client, and opens it anew when the broker
 * has lost it. Limit: what may have arrived is never sent twice; its client is told instead.
 */
import { addAbortSignal, type Readable } from "node:stream";
import { ErrandApiError, localError } from "../../client/errors.ts";
import { failed, notOurs } from "../../client/failures.ts";
import { sleep, TimeLimit } from "../../util/timing.ts";
import type { Target } from "../discover.ts";
import { post, reading } from "./post.ts";
import {
  type Id,
  lines,
  type Message,
  messagesOf,
  mirrorHeaders,
  parseMessage,
  toErrorMessage,
  versionOf,
} from "./wire.ts";

export interface BridgeOptions {
  /** Asked for each message: a broker that comes back may be somewhere else. */
  readonly target: () => Promise<Target>;
  /** One line for the client. */
  readonly send: (line: string) => Promise<void>;
  /** Remarks for people. */
  readonly say: (line: string) => void;
}

/** A call is answered within a minute, and a stream says something every 15 s. */
const SILENCE_MS = 90_000;
const NOTICE_MS = 10_000;
/** Clients that close stdin kill whoever is still there two seconds later. */
const GRACE_MS = 1_000;
const FAREWELL_MS = 500;

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
  readonly #underway = new Map<string, { readonly controller: AbortController; readonly isOld: boolean }>();
  readonly #answering = new Set<Promise<void>>();
  #session: Session | undefined;
  /** How the client opened its session. */
  #opening: Request | undefined;
  #reopening: Promise<void> | undefined;
  #reopened = 0;
  #isAway = false;

  constructor(options: BridgeOptions) {
    this.#options = options;
  }

  /** Until the input ends, or the signal aborts it; what is under way then has a moment to end. */
  async run(input: Readable, signal: AbortSignal): Promise<void> {
    addAbortSignal(signal, input);
    const broken = (error: unknown) => void input.destroy(error instanceof Error ? error : undefined);
    try {
      for await (const line of lines(input)) if (line.trim() !== "") await this.#take(line, broken);
    } finally {
      await Promise.race([Promise.all(this.#answering), sleep(signal.aborted ? 0 : GRACE_MS)]);
      for (const { controller } of this.#underway.values()) controller.abort();
      await this.#leave();
    }
  }

  async #take(line: string, broken: (error: unknown) => void): Promise<void> {
    const message = parseMessage(line);
    if (message === undefined) return this.#refuse(line);
    if (!isRequest(message)) return this.#tell(message, line);
    const answering: Promise<void> = this.#answer(message, line)
      .catch(broken)
      .finally(() => this.#answering.delete(answering));
    this.#answering.add(answering);
    // Whatever follows belongs to the session that this one opens.
    if (message.method === "initialize") await answering;
  }

  #refuse(line: string): Promise<void> {
    const isJson = canParse(line);
    const error = localError({
      code: isJson ? "invalid_request" : "invalid_json",
      category: "PROTOCOL",
      detail: isJson ? "A line on stdin is no JSON-RPC message" : "A line on stdin is not JSON",
      recovery: "Send one JSON-RPC message a line.",
    });
    return this.#options.send(JSON.stringify(toErrorMessage(null, error)));
  }

  async #answer(request: Request, line: string): Promise<void> {
    const controller = new AbortController();
    const key = keyOf(request.id);
    this.#underway.set(key, { controller, isOld: versionOf(request) === undefined });
    try {
      await this.#ask(request, line, controller.signal);
      this.#isAway = false;
    } catch (error) {
      // Whoever canceled it waits for nothing.
      if (controller.signal.aborted) return;
      if (!(error instanceof ErrandApiError)) throw error;
      this.#complain(error);
      await this.#options.send(JSON.stringify(toErrorMessage(request.id, error)));
    } finally {
      this.#underway.delete(key);
    }
  }

  async #ask(request: Request, line: string, signal: AbortSignal): Promise<void> {
    for (let isAgain = false; ; isAgain = true) {
      const session = this.#session;
      const isLost = await this.#exchange(request, line, signal, (response) => {
        const isGone = response.status === 404 && versionOf(request) === undefined;
        return isGone && session !== undefined && request.method !== "initialize" && !isAgain;
      });
      if (!isLost || session === undefined) return;
      // Refused for its session alone, so it can be sent again.
      await this.#reopen(session);
    }
  }

  /** One POST, and what comes back to the client; true when `isLost` took the answer for none. */
  async #exchange(
    request: Request,
    line: string,
    signal: AbortSignal | undefined,
    isLost: (response: Response) => boolean,
    send: (line: string) => Promise<void> = this.#options.send,
  ): Promise<boolean> {
    const { url, token } = await this.#options.target();
    const limit = new TimeLimit(SILENCE_MS, signal);
    try {
      const response = await post({ url, token }, this.#headers(request), line, limit);
      if (isLost(response)) {
        await response.body?.cancel();
        return true;
      }
      if (response.status === 401) this.#options.say("the broker refuses the token: check ERRAND_TOKEN.");
      let isAnswered = false;
      const parts = messagesOf(response, () => limit.restart(SILENCE_MS));
      for await (const text of reading(parts, url, limit)) {
        const part = parseMessage(text);
        if (part === undefined) throw notOurs(url, response.status, "no message of MCP");
        const isAnswer = part.method === undefined;
        if (isAnswer && request.method === "initialize") this.#opened(request, response, part);
        // Of a request that was refused as a whole the broker does not say which it was.
        const isNameless = isAnswer && part.id !== request.id;
        await send(isNameless ? JSON.stringify({ ...part, id: request.id }) : text.replace(/\r?\n/g, " "));
        isAnswered ||= isAnswer;
      }
      if (!isAnswered) throw failed(url, new Error("it ended without an answer"), true);
      return false;
    } finally {
      limit.close();
    }
  }

  #headers(message: Message): Record<string, string> {
    const version = versionOf(message);
    if (version !== undefined) return mirrorHeaders(version, message);
    if (message.method === "initialize" || this.#session === undefined) return {};
    const { id, version: agreed } = this.#session;
    return { "mcp-session-id": id, ...(agreed !== undefined && { "mcp-protocol-version": agreed }) };
  }

  #opened(request: Request, response: Response, answer: Message): void {
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

  /** The same handshake once more, once for all who found their session lost. */
  #reopen(lost: Session): Promise<void> {
    if (this.#session !== lost || this.#opening === undefined) return Promise.resolve();
    const opening = { ...this.#opening, id: `errand-mcp-${this.#reopened++}` };
    this.#reopening ??= (async () => {
      const line = JSON.stringify(opening);
      await this.#exchange(
        opening,
        line,
        undefined,
        () => false,
        async () => undefined,
      );
      const ready = { jsonrpc: "2.0" as const, method: "notifications/initialized" };
      await this.#tell(ready, JSON.stringify(ready));
    })().finally(() => {
      this.#reopening = undefined;
    });
    return this.#reopening;
  }

  /** Notifications, and answers to what the broker asked: nothing comes back. */
  async #tell(message: Message, line: string): Promise<void> {
    const isCancel = message.method === "notifications/cancelled";
    const underway = isCancel ? this.#underway.get(keyOf(message.params?.requestId)) : undefined;
    try {
      // Since 2026-07-28 a request is canceled by closing its stream.
      if (!isCancel || underway?.isOld) await this.#notify(message, line);
    } catch (error) {
      if (!(error instanceof ErrandApiError)) throw error;
      this.#complain(error);
    } finally {
      underway?.controller.abort();
    }
  }

  async #notify(message: Message, line: string): Promise<void> {
    const limit = new TimeLimit(NOTICE_MS);
    try {
      const response = await post(await this.#options.target(), this.#headers(message), line, limit);
      await response.body?.cancel();
    } finally {
      limit.close();
    }
  }

  /** Once for each time that it goes away. */
  #complain({ message, category }: ErrandApiError): void {
    if (category === "TRANSPORT" && this.#isAway) return;
    this.#isAway = category === "TRANSPORT";
    this.#options.say(message);
  }

  async #leave(): Promise<void> {
    if (this.#session === undefined) return;
    const limit = new TimeLimit(FAREWELL_MS);
    try {
      const { url, token } = await this.#options.target();
      const headers = { authorization: `Bearer ${token}`, "mcp-session-id": this.#session.id };
      await fetch(`${url}/mcp`, { method: "DELETE", headers, redirect: "error", signal: limit.signal });
    } catch {
      // It is forgotten there by itself.
    } finally {
      limit.close();
    }
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
