/** What `errand doctor` says of links and mail. */
import type { NetworkInterfaceInfo } from "node:os";
import { expect, test } from "vitest";
import type { Check } from "../../../src/cli/doctor/check.ts";
import { reachChecks } from "../../../src/cli/doctor/reach.ts";
import { Admin } from "../../../src/index.ts";
import { OPERATOR, startBroker } from "../../support/broker.ts";

/** 127.0.0.1 stands for an address of a network, and 127.0.0.2 for one at which the broker does not listen. */
const interfaces = () => ({ eth0: ["127.0.0.1", "127.0.0.2"].map(addressed) });
const addressed = (address: string): NetworkInterfaceInfo => ({
  ...{ address, netmask: "255.0.0.0", family: "IPv4", mac: "00:00:00:00:00:00" },
  ...{ internal: false, cidr: null },
});

async function checksOf(options: Parameters<typeof startBroker>[0]) {
  const { url } = await startBroker(options);
  const found: Check[] = [];
  const status = await new Admin({ url, token: OPERATOR }).status();
  for await (const one of reachChecks(url, status, interfaces)) found.push(one);
  const of = (name: Check["check"]) => found.find(({ check }) => check === name);
  return { url, links: of("links"), mail: of("mail") };
}

test("without a public URL it says that there are no links, and where the broker answers in the network", async () => {
  const { url, links, mail } = await checksOf({});
  expect(links).toMatchObject({ status: "skip", detail: expect.stringContaining("ERRAND_PUBLIC_URL") });
  expect(links?.detail).toMatch(new RegExp(`answers at ${url.replaceAll(".", "\\.")}$`));
  expect(mail).toMatchObject({ status: "skip", detail: expect.stringContaining("ERRAND_SMTP_URL") });
});

test("it names the public URL, and warns of one that no phone can open", async () => {
  const { links } = await checksOf({ publicUrl: "https://errand.example" });
  expect(links).toEqual({
    check: "links",
    status: "ok",
    detail: "notifications link to https://errand.example",
  });
  expect((await checksOf({ publicUrl: "http://localhost:4180" })).links).toMatchObject({
    status: "warn",
    remedy: expect.stringContaining("a phone can open"),
  });
});
