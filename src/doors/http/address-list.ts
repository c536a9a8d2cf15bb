/** IP addresses: one spelling for each, and lists of addresses and networks. */
import { BlockList, isIP } from "node:net";
import ipaddr from "ipaddr.js";

/** The address in its one spelling: IPv4 mapped into IPv6 is IPv4, without a zone. Undefined if it is none. */
export function toAddress(text: string): string | undefined {
  const [plain = ""] = text.split("%", 1);
  return isIP(plain) === 0 ? undefined : ipaddr.process(plain).toString();
}

/** One host has a whole IPv6 network of addresses, so all of a /64 count as one. Other text stays as it is. */
export function networkOf(text: string): string {
  const address = toAddress(text);
  if (address === undefined) return text;
  if (isIP(address) === 4) return address;
  return `${ipaddr.IPv6.parse(address).toNormalizedString().split(":").slice(0, 4).join(":")}::/64`;
}

interface Network {
  readonly address: string;
  readonly family: "ipv4" | "ipv6";
  readonly prefix: number;
}

function toNetwork(text: string): Network | undefined {
  const [given = "", digits, ...rest] = text.split("/");
  if (isIP(given) === 0 || given.includes("%") || rest.length > 0) return undefined;
  const address = ipaddr.process(given).toString();
  const isV4 = isIP(address) === 4;
  const most = isV4 ? 32 : 128;
  const mapped = isV4 && given.includes(":") ? 96 : 0;
  if (digits !== undefined && !/^\d{1,3}$/.test(digits)) return undefined;
  const prefix = digits === undefined ? most : Number(digits) - mapped;
  return prefix >= 1 && prefix <= most ? { address, family: isV4 ? "ipv4" : "ipv6", prefix } : undefined;
}

/** Whether it is an address or a CIDR. All addresses at once (`/0`) are none. */
export const isNetwork = (text: string): boolean => toNetwork(text) !== undefined;

/** Ignores what is no network. */
export function blockList(entries: readonly string[]): BlockList {
  const list = new BlockList();
  for (const entry of entries) {
    const network = toNetwork(entry);
    if (network) list.addSubnet(network.address, network.prefix, network.family);
  }
  return list;
}
