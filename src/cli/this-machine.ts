/** Whether a URL leads to this machine. */
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { hostname, networkInterfaces } from "node:os";

export async function isOnThisMachine(url: string): Promise<boolean> {
  const name = new URL(url).hostname.replace(/^\[|\]$/g, "");
  if (name === hostname().toLowerCase()) return true;
  const own = Object.values(networkInterfaces()).flatMap((all = []) => all.map(({ address }) => address));
  const isOwn = (address: string) => /^127\.|^::1$/.test(address) || own.includes(address);
  return (await addressesOf(name)).every(isOwn);
}

async function addressesOf(name: string): Promise<string[]> {
  if (isIP(name) !== 0) return [name];
  const found = await lookup(name, { all: true }).catch(() => []);
  // A name that is not known leads nowhere, and so not here.
  return found.length > 0 ? found.map(({ address }) => address) : [""];
}
