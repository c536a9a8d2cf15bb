/**
 * The lines of `errand serve` about a broker that other machines can reach: its addresses, and a warning that it has no
 * TLS.
 */
import { type NetworkInterfaceInfo, networkInterfaces } from "node:os";

type Interfaces = NodeJS.Dict<Pick<NetworkInterfaceInfo, "address" | "family" | "internal">[]>;

const WARNING =
  "warning: without TLS, tokens can be read on the network; put a proxy with TLS in front, unless you trust the network (docs/operations.md)";

export function reachableLines(
  {
    host,
    port,
    publicUrl,
  }: { readonly host: string; readonly port: number; readonly publicUrl?: string | undefined },
  interfaces: Interfaces = networkInterfaces(),
): string[] {
  if (/^(?:localhost|127\..*|::1)$/.test(host)) return [];
  const urls = isAny(host) ? addresses(host, interfaces).map((name) => `http://${name}:${port}`) : [];
  return [
    ...(urls.length > 0 ? [`other machines reach it at ${urls.join(", ")}`] : []),
    ...(publicUrl?.startsWith("https:") ? [] : [WARNING]),
  ];
}

const isAny = (host: string): boolean => host === "0.0.0.0" || host === "::";

/** Without link-local addresses of IPv6, which need a zone. */
function addresses(host: string, interfaces: Interfaces): string[] {
  return Object.values(interfaces).flatMap((all = []) =>
    all.flatMap(({ address, family, internal }) => {
      if (internal || address.startsWith("fe80:")) return [];
      if (family === "IPv4") return [address];
      return host === "::" ? [`[${address}]`] : [];
    }),
  );
}
