/** What the client needs of HTTP, so that something else than `fetch` can send its calls. */
import type { ByteStream } from "../util/text.ts";

/** An answer whose headers have arrived. The `Response` of fetch is one. */
export interface HttpResponse {
  /** Whether the status is 200 to 299. */
  readonly ok: boolean;
  readonly status: number;
  readonly headers: ReadableHeaders;
  /** Of fetch alone: `opaqueredirect` for a redirect that a browser hides. */
  readonly type?: string;
  readonly body: ByteStream | null;
  text(): Promise<string>;
}

export type ReadableHeaders = Pick<Headers, "get">;

export interface HttpRequest {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array<ArrayBuffer>;
  /** Redirects are never followed. */
  readonly redirect: "manual";
  readonly signal: AbortSignal;
}

/** Resolves when the headers have arrived. Rejects with an error whose `code`, or that of a cause of it, says why. */
export type Transport = (url: URL, request: HttpRequest) => Promise<HttpResponse>;
