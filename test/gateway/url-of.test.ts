/** The URL that a gateway announces to the CLI. */
import { expect, test } from "vitest";
import { addressUrlOf } from "../../src/gateway/url-of.ts";

const NAMES: Readonly<Record<string, string>> = {
  "gateway.example": "192.0.2.7",
  "six.example": "2001:db8::1",
};
const lookup = async (name: string) => {
  const address = NAMES[name];
  if (address === undefined) throw new Error("ENOTFOUND");
  return { address };
};

test.each([
  ["localhost", "http://localhost:4180"],
  ["0.0.0.0", "http://127.0.0.1:4180"],
  ["::", "http://[::1]:4180"],
  ["192.0.2.1", "http://192.0.2.1:4180"],
  ["gateway.example", "http://192.0.2.7:4180"],
  ["six.example", "http://[2001:db8::1]:4180"],
  ["unknown.example", "http://unknown.example:4180"],
])("%s is announced as %s", async (host, url) => {
  expect(await addressUrlOf(host, 4180, lookup)).toBe(url);
});
