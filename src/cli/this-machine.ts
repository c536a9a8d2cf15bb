/**
 * Whether a URL leads to this machine. Only an address of this machine and localhost do. The request looks up every other
 * name, also that of this machine, and the answer could be the address of another machine.
 */
import { isIP } from "node:net";
import { networkInterfaces } from "node:os";

export function isOnThisMachine(url: string): boolean {
  const name = new URL(url).hostname.replace(/^\[|\]$/g, "");
  if (isIP(name) === 0) return name === "localhost";
  const own = Object.values(networkInterfaces()).flatMap((all = []) => all.map(({ address }) => address));
  return /^127\.|^::1$/.test(name) || own.includes(name);
}
