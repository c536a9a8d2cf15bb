/**
 * Says who answered in place of the server that was asked, and with what. Foreign text is shown on one line, cut, and without the
 * credentials that were sent. Limit: a server that changes the credentials, for example decodes them, may show them.
 */
import { oneLine } from "./text.ts";

const SHOWN_CHARS = 80;
const READ_CHARS = 2_000;

export interface Described {
  readonly url: URL;
  readonly status: number;
  readonly headers: Pick<Headers, "get">;
  /** The beginning of the body. */
  readonly text: string;
}

export interface DescribeOptions {
  /** The headers with credentials. */
  readonly headers: Readonly<Record<string, string>>;
  /** How messages name an address. */
  readonly nameOf: (url: URL) => string;
  /** Whether messages may name where a redirect leads. */
  readonly namesTargets: boolean;
}

export type Describe = (answer: Described) => string;

/** Without the query, which may have a credential. */
export const addressOf = ({ origin, pathname }: URL): string => `${origin}${pathname}`;

export function describing({ headers: sent, nameOf, namesTargets }: DescribeOptions): Describe {
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
    const location = namesTargets && status >= 300 && status < 400 ? headers.get("location") : null;
    const redirect = location === null ? "" : `, a redirect to ${shown(targetOf(location, url))}`;
    return `${nameOf(url)} answered with HTTP ${status}${redirect}, ${type}, ${body}`;
  };
}

/** Where a redirect leads, without credentials and query. */
function targetOf(location: string, from: URL): string {
  if (!URL.canParse(location, from.href)) return "an address that is not a URL";
  const target = new URL(location, from);
  return /^https?:$/.test(target.protocol) ? addressOf(target) : `an address with ${target.protocol}`;
}
