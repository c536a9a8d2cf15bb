import type { LookupFunction } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { Egress, EgressRefusedError } from "../../../src/engine/outbound/egress.ts";
import { parseProxy } from "../../../src/util/proxy.ts";
import { startProxy } from "../../support/forward-proxy.ts";
import { startReceiver } from "../../support/receiver.ts";

const NAMES: Readonly<Record<string, string>> = {
  "public.example": "93.184.216.34",
  "inside.example": "10.1.2.3",
  "metadata.example": "169.254.169.254",
  "self.example": "127.0.0.1",
};
const lookup: LookupFunction = (host, _options, callback) => {
  const address = NAMES[host];
  if (address === undefined) callback(Object.assign(new Error("unknown"), { code: "ENOTFOUND" }), "");
  else callback(null, [{ address, family: 4 }]);
};

async function setup(allow: readonly string[] = [], credentials?: string) {
  const receiver = await startReceiver();
  const proxy = await startProxy({ to: receiver.port, ...(credentials && { credentials: "ann:hush" }) });
  const user = credentials === undefined ? "" : `${credentials}@`;
  const egress = new Egress(allow, lookup, parseProxy(`http://${user}${proxy.place}`, "ERRAND_EGRESS_PROXY"));
  onTestFinished(() => egress.close());
  const post = (host: string) =>
    egress.post(`http://${host}/hook`, {}, "{}").catch((error: unknown) => error);
  return { receiver, proxy, egress, post };
}

test("outgoing calls to public addresses go through the proxy, also of names that only it knows", async () => {
  const { proxy, egress, receiver, post } = await setup([], "ann:hush");
  expect(await post("public.example")).toBe(204);
  expect(await post("only-the-proxy-knows.example")).toBe(204);
  const opened = await egress.open(new URL("http://public.example/stream"), {});
  expect(opened.status).toBe(204);
  expect(proxy.seen).toEqual([
    "POST http://public.example/hook",
    "POST http://only-the-proxy-knows.example/hook",
    "GET http://public.example/stream",
  ]);
  for (const { headers } of receiver.received) expect(headers).not.toHaveProperty("proxy-authorization");
  expect(receiver.received.map(({ headers }) => headers.host)).toEqual([
    "public.example",
    "only-the-proxy-knows.example",
    "public.example",
  ]);
  await expect(egress.post("https://public.example/hook", {}, "{}")).rejects.toThrow();
  expect(proxy.seen.at(-1)).toBe("CONNECT public.example:443");
});

test("the guard refuses private addresses before the proxy is asked, also behind a name", async () => {
  const { proxy, post, egress } = await setup();
  for (const host of [
    "inside.example",
    "metadata.example",
    "self.example",
    "10.1.2.3",
    "127.0.0.1",
    "[::1]",
    "localhost",
  ]) {
    expect(await post(host), host).toBeInstanceOf(EgressRefusedError);
    await expect(egress.open(new URL(`http://${host}/`), {}), host).rejects.toBeInstanceOf(
      EgressRefusedError,
    );
  }
  expect(proxy.seen).toEqual([]);
});

test("private addresses that are allowed are called directly", async () => {
  const { proxy, post, receiver } = await setup(["127.0.0.0/8", "named.example"]);
  expect(await post(`127.0.0.1:${receiver.port}`)).toBe(204);
  expect(await post(`self.example:${receiver.port}`)).toBe(204);
  await post("named.example");
  expect(proxy.seen).toEqual([]);
});

test("a refusal of the proxy has a code, and no password", async () => {
  const { post, proxy, egress } = await setup([], "ann:wrong-hush");
  for (const scheme of ["http", "https"])
    await expect(egress.open(new URL(`${scheme}://public.example/`), {})).rejects.toMatchObject({
      code: "PROXY_AUTH_REQUIRED",
    });
  const refused = await post("public.example");
  expect(refused).toMatchObject({ code: "PROXY_AUTH_REQUIRED" });
  expect(String(refused)).toContain(
    `the proxy ${proxy.place} (ERRAND_EGRESS_PROXY) refuses the user and password`,
  );
  expect(String(refused)).not.toContain("hush");
});
