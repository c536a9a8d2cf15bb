/**
 * The client's address behind proxies. A header counts only from a trusted proxy, and of its addresses only those that
 * trusted proxies wrote: anybody can send the rest. Limit: a proxy must write or extend the header that it sends.
 */
import { type BlockList, isIP } from "node:net";
import { blockList, toAddress } from "./address-list.ts";

/** The headers of a request that name its client. */
export interface ForwardedHeaders {
  readonly "x-forwarded-for"?: string | string[] | undefined;
  readonly forwarded?: string | string[] | undefined;
}

/** The address of all clients whose proxy writes something else than an address. It is bounded as any other. */
const UNNAMED = "unknown";

export class TrustedProxies {
  readonly #list: BlockList | null;

  constructor(entries: readonly string[] = []) {
    this.#list = entries.length === 0 ? null : blockList(entries);
  }

  has(text: string): boolean {
    if (!this.#list) return false;
    const address = toAddress(text);
    return address !== undefined && this.#list.check(address, isIP(address) === 4 ? "ipv4" : "ipv6");
  }

  /**
   * The address nearest to the broker that is no trusted proxy. With `X-Forwarded-For`, `Forwarded` does not count: a proxy
   * that writes the first may pass on what its client sent as the second.
   */
  clientOf(peer: string, { "x-forwarded-for": list, forwarded }: ForwardedHeaders): string {
    if (!this.has(peer) || (list ?? forwarded) === undefined) return peer;
    const chain = list === undefined ? elementsOf(textOf(forwarded)).map(forOf) : textOf(list).split(",");
    return this.#clientIn(chain, peer);
  }

  #clientIn(chain: readonly string[], peer: string): string {
    let client = peer;
    for (const entry of [...chain].reverse()) {
      client = addressIn(entry.trim()) ?? UNNAMED;
      if (!this.has(client)) return client;
    }
    return client;
  }
}

/** Whether a request claims to be forwarded. */
export const isForwarded = (headers: ForwardedHeaders): boolean =>
  headers["x-forwarded-for"] !== undefined || headers.forwarded !== undefined;

const textOf = (header: string | string[] | undefined): string => [header ?? ""].flat().join(",");

/** A single quote of a client must not hide what the proxy wrote after it. */
const elementsOf = (text: string): string[] =>
  text.split('"').length % 2 === 1 ? splitOutsideQuotes(text, ",") : text.split(",");

/** The `for` of an element of `Forwarded`; empty if it has none. */
function forOf(element: string): string {
  for (const pair of splitOutsideQuotes(element, ";")) {
    const at = pair.indexOf("=");
    if (pair.slice(0, at).trim().toLowerCase() !== "for") continue;
    const value = pair.slice(at + 1).trim();
    return value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value;
  }
  return "";
}

function splitOutsideQuotes(text: string, separator: string): string[] {
  const parts: string[] = [];
  let quoted = false;
  let from = 0;
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at];
    if (char === '"') quoted = !quoted;
    else if (char === separator && !quoted) {
      parts.push(text.slice(from, at));
      from = at + 1;
    }
  }
  return [...parts, text.slice(from)];
}

/** The address in `1.2.3.4`, `1.2.3.4:80`, `::1`, `[::1]` or `[::1]:80`. */
function addressIn(entry: string): string | undefined {
  const [, bracketed] = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(entry) ?? [];
  if (bracketed !== undefined) return isIP(bracketed) === 6 ? toAddress(bracketed) : undefined;
  const [, beforePort] = /^([\d.]+):\d{1,5}$/.exec(entry) ?? [];
  return toAddress(beforePort ?? entry);
}
