/** One A2A request: the caller, the agent, and the signal that ends its stream. */
import { ErrandError } from "../../schema/errors.ts";
import { AGENT_NAME } from "../../schema/values.ts";
import type { StopSignal } from "../../util/stop-signal.ts";
import type { AuthenticatedRequest } from "../http/authenticated-request.ts";
import { type Reader, toReader } from "../http/event-stream.ts";
import { a2aUrl } from "../http/links.ts";
import type { CardSigner } from "./cards/signing.ts";

/** Rejects an invalid name without a lookup. */
export function requireAgentName(agent: string | undefined): string {
  if (agent !== undefined && AGENT_NAME.test(agent)) return agent;
  throw new ErrandError("agent_unknown", "There is no agent with this name.");
}

export class A2AContext {
  readonly request: AuthenticatedRequest;
  /** The agent's name from the path. The engine checks that it exists. */
  readonly agent: string;
  readonly signer: CardSigner | null;
  /** The original params of a 1.0 request, checked. */
  readonly rawParams: unknown;
  readonly #readerGone = new AbortController();
  /** The error that our handler threw, before the SDK rewrites it. */
  thrown: { readonly error: unknown } | undefined;

  /** The scope of the reserved stream, which counts against the caller's quota. */
  #reserved: ReturnType<AuthenticatedRequest["openScope"]> | undefined;

  constructor(
    request: AuthenticatedRequest,
    agent: string | undefined,
    signer: CardSigner | null,
    rawParams?: unknown,
  ) {
    this.request = request;
    this.agent = requireAgentName(agent);
    this.signer = signer;
    this.rawParams = rawParams;
  }

  /** Aborts when the stream's reader disconnects. */
  get signal(): AbortSignal {
    return this.#readerGone.signal;
  }

  /** Ends the stream when this signal aborts. */
  endOn(signal: StopSignal): void {
    if (signal.aborted) this.#readerGone.abort();
    else signal.addEventListener("abort", { handleEvent: () => this.#readerGone.abort() });
  }

  /** Throws when the caller is at its stream limit; to be called before work is accepted. */
  reserveStream(): void {
    this.#reserved = this.request.openScope("streams");
  }

  /** Releases the reservation of a request that fails before its stream starts. */
  releaseStream(): void {
    this.#reserved?.release();
  }

  /** The parts of the request that its stream needs, with the reserved scope. */
  reader(): Reader {
    return toReader(this.request, this.#reserved);
  }

  /** The agent's URL as an A2A server. */
  get url(): string {
    return a2aUrl(this.request.broker.publicUrl(), this.agent);
  }
}
