/**
 * Whether a URL leads to this machine. A name is not looked up: whoever owns it could answer with this machine now, and
 * with another one when the request is sent.
 */
import { isIP } from "node:net";
import { hostname, networkInterfaces } from "node:os";

export function isOnThisMachine(url: string): boolean {
  const name = new URL(url).hostname.replace(/^\[|\]$/g, "");
  if (isIP(name) === 0) return name === "localhost" || name === hostname().toLowerCase();
  const own = Object.values(networkInterfaces()).flatMap((all = []) => all.map(({ address }) => address));
  return /^127\.|^::1$/.test(name) || own.includes(name);
}
