/** The address at which other machines reach a broker of this machine. Limit: a firewall may still be in between. */
import { networkInterfaces } from "node:os";
import { BROKER_HEADER } from "../client/known-broker.ts";

const PROBE_MS = 2_000;

/**
 * Asks this machine's own addresses, IPv4 first, for the broker with this id at the port of `url`; undefined if it answers
 * at none, because it listens on loopback only.
 */
export async function reachableAddress(url: string, brokerId: string): Promise<string | undefined> {
  const { port, protocol } = new URL(url);
  if (protocol !== "http:") return undefined;
  const all = Object.values(networkInterfaces()).flatMap((found = []) => found);
  const outside = all.filter(({ internal, address }) => !internal && !address.startsWith("fe80:"));
  const names = [
    ...outside.filter(({ family }) => family === "IPv4").map(({ address }) => address),
    ...outside.filter(({ family }) => family === "IPv6").map(({ address }) => `[${address}]`),
  ];
  const urls = names.map((name) => `http://${name}${port === "" ? "" : `:${port}`}`);
  const answered = await Promise.all(urls.map(async (one) => (await isBroker(one, brokerId)) && one));
  return answered.find((one) => one !== false);
}

async function isBroker(url: string, id: string): Promise<boolean> {
  const signal = AbortSignal.timeout(PROBE_MS);
  const answer = await fetch(`${url}/healthz`, { signal, redirect: "manual" }).catch(() => null);
  await answer?.body?.cancel();
  return answer?.headers.get(BROKER_HEADER) === id;
}
