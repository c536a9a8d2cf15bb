/** The URL by which a client on this machine reaches the gateway. */
import * as dns from "node:dns/promises";
import { isIP } from "node:net";

export function urlOf(host: string, port: number): string {
  const name =
    host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "[::1]" : host.includes(":") ? `[${host}]` : host;
  return `http://${name}:${port}`;
}

/**
 * The same with the address of a name, because the CLI trusts no name but localhost (cli/discover.ts). A name that
 * cannot be looked up stays.
 */
export async function addressUrlOf(
  host: string,
  port: number,
  lookup: (name: string) => Promise<{ readonly address: string }> = dns.lookup,
): Promise<string> {
  if (isIP(host) !== 0 || host === "localhost") return urlOf(host, port);
  const found = await lookup(host).catch(() => null);
  return urlOf(found?.address ?? host, port);
}
