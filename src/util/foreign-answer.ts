/**
 * Says who answered in place of the server that was asked, and with what. Foreign text is shown on one line, cut, and without the
 * credentials that were sent. Limit: a server that changes the credentials, for example decodes them, may show them.
 */
import { oneLine } from "./shown-text.ts";

const SHOWN_CHARS = 80;
const READ_CHARS = 2_000;

export interface Described {
  readonly url: URL;
  readonly status: number;
  readonly headers: Headers;
  /** The beginning of the body. */
  readonly text: string;
}

export interface DescribeOptions {
  /** The headers with credentials. */
  readonly headers: Readonly<Record<string, string>>;
  /** How messages name an address. */
  readonly nameOf: (url: URL) => string;
}

export type Describe = (answer: Described) => string;

/** Without the query, which may have a credential. */
export const addressOf = ({ origin, pathname }: URL): string => `${origin}${pathname}`;

export function describing({ headers: sent, nameOf }: DescribeOptions): Describe {
  // Of `Bearer x`, the server may repeat `x` alone.
  const secrets = Object.values(sent).flatMap((value) => [value, value.split(" ").at(-1) ?? ""]);
  const shown = (text: string): string =>
    oneLine(
      secrets.reduce((safe, secret) => (secret === "" ? safe : safe.replaceAll(secret, "***")), text),
      SHOWN_CHARS,
    );
  return ({ url, status, headers, text }) => {
    const type = shown(headers.get("content-type") ?? "") || "no content type";
    const words = text
      .slice(0, READ_CHARS)
      .replace(/<[^<>]*>/g, " ")
      .replace(/\s+/g, " ");
    const begins = shown(words);
    const body = begins === "" ? (text.trim() === "" ? "an empty body" : "a page") : `'${begins}'`;
    return `${nameOf(url)} answered with HTTP ${status}, ${type}, ${body}`;
  };
}
