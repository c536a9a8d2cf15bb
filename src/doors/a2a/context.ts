/** One request of an A2A client: who asks, of which agent, and what must end with it. Limit: lives as long as the answer. */
import { ErrandError } from "../../schema/errors.ts";
import { AGENT_NAME } from "../../schema/values.ts";
import type { AuthenticatedRequest } from "../http/authenticated-request.ts";
import { a2aUrl } from "../http/links.ts";
import type { Reader } from "../http/stream.ts";
import type { Signer } from "./cards/signing.ts";

/** What can be no agent's name is not looked for. */
export function requireName(agent: string | undefined): string {
  if (agent !== undefined && AGENT_NAME.test(agent)) return agent;
  throw new ErrandError("agent_unknown", "There is no such agent.");
}

export class Scope {
  readonly call: AuthenticatedRequest;
  /** The agent's name as the path has it; whether there is one is for the engine to say. */
  readonly agent: string;
  readonly signer: Signer | null;
  /** Params of 1.0 as they came, checked. */
  readonly raw: unknown;
  readonly #gone = new AbortController();
  /** What our handler threw, before anybody made something else of it. */
  failure: { readonly error: unknown } | undefined;

  /** A place among the caller's streams, taken before anything is accepted. */
  #place: ReturnType<AuthenticatedRequest["openScope"]> | undefined;

  constructor(call: AuthenticatedRequest, agent: string | undefined, signer: Signer | null, raw?: unknown) {
    this.call = call;
    this.agent = requireName(agent);
    this.signer = signer;
    this.raw = raw;
  }

  /** Aborts when the reader of a stream is gone. */
  get signal(): AbortSignal {
    return this.#gone.signal;
  }

  /** Lets the stream end when this signal aborts. */
  endWith(signal: AbortSignal): void {
    if (signal.aborted) this.#gone.abort();
    else signal.addEventListener("abort", () => this.#gone.abort(), { once: true });
  }

  /** Throws where the caller has as many streams as it may; whoever is let in is not refused for that later. */
  takePlace(): void {
    this.#place = this.call.openScope("streams");
  }

  /** When there will be no stream after all. */
  leavePlace(): void {
    this.#place?.release();
  }

  /** What a stream of this request needs. */
  reader(): Reader {
    const { call } = this;
    const { broker, requestId } = call;
    return {
      broker,
      requestId,
      cut: () => call.cut(),
      reserve: (bytes) => call.reserve(bytes),
      openScope: (quota) => this.#place ?? call.openScope(quota),
    };
  }

  /** Where this agent is an A2A server. */
  get url(): string {
    return a2aUrl(this.call.broker.publicUrl(), this.agent);
  }
}
