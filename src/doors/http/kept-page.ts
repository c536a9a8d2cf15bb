/**
 * A page that is the same for everybody: rendered and compressed once, its bytes kept, so that a request without a token
 * costs little. Limit: for a few pages that change only with the process or its settings.
 */
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { namesTag, weakTag } from "./etags.ts";
import { TextResponse } from "./text-response.ts";

/** The smallest first. */
const ENCODINGS = ["br", "gzip"] as const;
type Encoding = (typeof ENCODINGS)[number];

/** A higher quality takes much longer for a few bytes. */
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 6 } };

/** The smallest encoding that the client accepts. */
export function encodingFor(acceptEncoding: string | undefined): Encoding | undefined {
  const accepted = (acceptEncoding ?? "")
    .split(",")
    .map((entry) => entry.replaceAll(" ", "").toLowerCase())
    .filter((entry) => !/;q=0(?:\.0*)?$/.test(entry))
    .map((entry) => entry.split(";")[0]);
  return ENCODINGS.find((encoding) => accepted.includes(encoding));
}

export class KeptPage {
  readonly #headers: Readonly<Record<string, string>>;
  readonly #plain: Buffer;
  readonly #tag: string;
  readonly #encoded = new Map<Encoding, Buffer>();

  constructor(text: string, headers: Readonly<Record<string, string>>) {
    this.#plain = Buffer.from(text);
    this.#tag = weakTag(this.#plain);
    this.#headers = {
      "cache-control": "no-cache",
      ...headers,
      etag: this.#tag,
      vary: [...(headers.vary === undefined ? [] : [headers.vary]), "Accept-Encoding, Origin"].join(", "),
    };
  }

  /** The most memory that it takes: its text and two encodings of it. */
  get maxBytes(): number {
    return 1_024 + 3 * this.#plain.length;
  }

  /** The page, or 304 if the client has it. `header` returns a header of the request. */
  respond(header: (name: string) => string | undefined): TextResponse {
    if (namesTag(header("if-none-match"), this.#tag)) return this.notModified();
    const encoding = encodingFor(header("accept-encoding"));
    if (!encoding) return new TextResponse(200, this.#plain, this.#headers);
    const encoded = this.#encoded.get(encoding) ?? this.#encode(encoding);
    return new TextResponse(200, encoded, { ...this.#headers, "content-encoding": encoding });
  }

  notModified(): TextResponse {
    return new TextResponse(304, null, this.#headers);
  }

  #encode(encoding: Encoding): Buffer {
    const encoded = encoding === "br" ? brotliCompressSync(this.#plain, BROTLI) : gzipSync(this.#plain);
    this.#encoded.set(encoding, encoded);
    return encoded;
  }
}
