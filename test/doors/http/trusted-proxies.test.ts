import { expect, onTestFinished, test } from "vitest";
import { networkOf } from "../../../src/doors/http/address-list.ts";
import type { HttpApp } from "../../../src/doors/http/app.ts";
import { Connection } from "../../../src/doors/http/connection.ts";
import { listen } from "../../../src/doors/http/listener.ts";
import { type ForwardedHeaders, TrustedProxies } from "../../../src/doors/http/trusted-proxies.ts";

const proxies = new TrustedProxies(["127.0.0.1", "10.0.0.0/8", "2001:db8:1::/48", "::ffff:192.0.2.0/120"]);
const PEER = "10.1.2.3";
const by = (xff: string): ForwardedHeaders => ({ "x-forwarded-for": xff });
const forwarded = (value: string): ForwardedHeaders => ({ forwarded: value });

const CASES: readonly (readonly [name: string, peer: string, headers: ForwardedHeaders, client: string])[] = [
  ["no header", PEER, {}, PEER],
  ["an untrusted peer's header is ignored", "198.51.100.1", by("203.0.113.9"), "198.51.100.1"],
  ["one client", PEER, by("203.0.113.9"), "203.0.113.9"],
  ["a spoofed first entry", PEER, by("1.1.1.1, 203.0.113.9"), "203.0.113.9"],
  ["a spoofed trusted entry", PEER, by("10.9.9.9, 203.0.113.9"), "203.0.113.9"],
  ["a chain of proxies", PEER, by("1.1.1.1, 203.0.113.9, 127.0.0.1,10.0.0.7"), "203.0.113.9"],
  ["only proxies", PEER, by("10.0.0.5, 10.0.0.6"), "10.0.0.5"],
  ["a mapped peer", "::ffff:10.1.2.3", by("203.0.113.9"), "203.0.113.9"],
  ["a mapped entry", PEER, by("::ffff:203.0.113.9"), "203.0.113.9"],
  ["a mapped CIDR", "192.0.2.77", by("203.0.113.9"), "203.0.113.9"],
  ["a peer with a zone", "2001:db8:1::5%eth0", by("203.0.113.9"), "203.0.113.9"],
  ["IPv6 in its one spelling", PEER, by("2001:DB8:0:0::9"), "2001:db8::9"],
  ["IPv6 in brackets", PEER, by("[2001:db8::9]"), "2001:db8::9"],
  ["IPv6 with a port", PEER, by("[2001:db8::9]:4711"), "2001:db8::9"],
  ["IPv4 with a port", PEER, by("203.0.113.9:4711, 10.0.0.7:80"), "203.0.113.9"],
  ["several headers", PEER, { "x-forwarded-for": ["1.1.1.1", "203.0.113.9"] }, "203.0.113.9"],
  ["garbage", PEER, by("unknown"), "unknown"],
  ["garbage before a client", PEER, by("<x>, 203.0.113.9"), "203.0.113.9"],
  ["garbage before a proxy", PEER, by("203.0.113.9, x, 10.0.0.7"), "unknown"],
  ["an empty header", PEER, by(""), "unknown"],
  ["a trailing comma", PEER, by("203.0.113.9,"), "unknown"],
  ["numbers that are no address", PEER, by("0x7f.1"), "unknown"],
  ["a leading zero", PEER, by("010.0.0.1"), "unknown"],
  ["a name", PEER, by("localhost"), "unknown"],
  ["Forwarded", PEER, forwarded("for=1.1.1.1, for=203.0.113.9;proto=https"), "203.0.113.9"],
  ["Forwarded with IPv6", PEER, forwarded('proto=https; For="[2001:db8::9]:4711"'), "2001:db8::9"],
  ["a comma in quotes", PEER, forwarded('for=203.0.113.9;by="a, for=1.1.1.1"'), "203.0.113.9"],
  ["a hidden client", PEER, forwarded("for=_hidden"), "unknown"],
  ["both agree", PEER, { ...by("203.0.113.9"), ...forwarded("for=203.0.113.9") }, "203.0.113.9"],
  ["both disagree", PEER, { ...by("203.0.113.9"), ...forwarded("for=1.1.1.1") }, "203.0.113.9"],
  [
    "garbage in X-Forwarded-For, an address in Forwarded",
    PEER,
    { ...by("x"), ...forwarded("for=1.1.1.1") },
    "unknown",
  ],
  ["Forwarded without an address", PEER, forwarded("proto=https"), "unknown"],
  ["a client's quote", PEER, by('", 203.0.113.9'), "203.0.113.9"],
  ["a client's quote in Forwarded", PEER, forwarded('for="1.1.1.1, for=203.0.113.9'), "203.0.113.9"],
];

test.each(CASES)("%s", (_name, peer, headers, client) => {
  expect(proxies.clientOf(peer, headers)).toBe(client);
});

test("without trusted proxies no header counts", () => {
  const none = new TrustedProxies();
  expect(none.clientOf("127.0.0.1", by("203.0.113.9"))).toBe("127.0.0.1");
});

test("an IPv6 network of 64 bits counts as one address", () => {
  expect(networkOf("2001:db8:1:2:3:4:5:6")).toBe("2001:db8:1:2::/64");
  expect(networkOf("::ffff:203.0.113.9")).toBe("203.0.113.9");
  expect(networkOf("nonsense")).toBe("nonsense");
});

async function serve(trusted: readonly string[]) {
  const clients: (string | undefined)[] = [];
  const warned: string[] = [];
  const serve: HttpApp["serve"] = (incoming, outgoing) => {
    clients.push(Connection.of(incoming.socket)?.client);
    outgoing.end();
  };
  const listener = await listen(
    { serve },
    {
      host: "127.0.0.1",
      port: 0,
      now: () => 0,
      proxies: new TrustedProxies(trusted),
      onUntrusted: (peer) => warned.push(peer),
    },
  );
  onTestFinished(() => listener.close(0));
  const ask = (headers: Record<string, string>) => fetch(`http://127.0.0.1:${listener.port}/`, { headers });
  return { ask, clients, warned };
}

test("each request of a trusted proxy's connection is its own client's", async () => {
  const { ask, clients, warned } = await serve(["127.0.0.1"]);
  for (const client of ["203.0.113.1", "203.0.113.2"]) await ask({ "x-forwarded-for": `1.1.1.1, ${client}` });
  await ask({});
  expect([clients, warned]).toEqual([["203.0.113.1", "203.0.113.2", "127.0.0.1"], []]);
});

test("a forwarded address of an untrusted peer is ignored, with one warning", async () => {
  const { ask, clients, warned } = await serve([]);
  await ask({});
  for (const name of ["x-forwarded-for", "forwarded"]) await ask({ [name]: "203.0.113.1" });
  expect([clients, warned]).toEqual([["127.0.0.1", "127.0.0.1", "127.0.0.1"], ["127.0.0.1"]]);
});
