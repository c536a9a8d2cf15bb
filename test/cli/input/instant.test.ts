/** Instants on the command line: a date alone, a local time, a time with a zone. */
import { expect, test } from "vitest";
import { stubBroker } from "../../client/stub-broker.ts";
import { run } from "../fake-host.ts";

const midnight = (daysAgo: number) => {
  const now = new Date();
  return new Date(now.getFullYear(), now.getMonth(), now.getDate() - daysAgo).toISOString();
};

const FORMS = [
  ["today", midnight(0)],
  ["yesterday", midnight(1)],
  ["2026-11-22", new Date(2026, 10, 22).toISOString()],
  ["2026-11-22T08:30", new Date(2026, 10, 22, 8, 30).toISOString()],
  ["2026-11-22T08:30:05Z", "2026-11-22T08:30:05Z"],
  ["2026-11-22T08:30:05.250+01:00", "2026-11-22T08:30:05.250+01:00"],
] as const;

test("every option that takes an instant accepts each form", async () => {
  const stub = await stubBroker(({ method }, answer) =>
    answer.json(
      method === "GET"
        ? { delegations: [], next_cursor: null, scanned_to: null }
        : { delegations: [], refused: [], next_before: null },
    ),
  );
  const env = { url: stub.url, token: "t" };
  for (const [given, sent] of FORMS) {
    expect((await run(["list", "--since", given, "--until", given], { env })).code).toBe(0);
    const listed = stub.seen.at(-1);
    expect([listed?.query.get("since"), listed?.query.get("until")]).toEqual([sent, sent]);
    for (const verb of ["cancel", "redrive"]) {
      expect((await run([verb, "--target", "scout", "--before", given, "--all"], { env })).code).toBe(0);
      expect(stub.seen.at(-1)?.body.before).toBe(sent);
    }
  }
});

test.each(["tomorrow", "2026-02-30", "2026-13-01", "2026-11-22T24:01", "2026-11-22T08:61", "9999-01-01"])(
  "%s is refused with the forms that are accepted",
  async (given) => {
    const { code, stderr } = await run(["list", "--since", given]);
    expect(code).toBe(64);
    for (const form of [given, "2026-01-31)", "2026-01-31T08:00)", "2026-01-31T08:00:00Z"])
      expect(stderr).toContain(form);
  },
);

test("an age is a time before now", async () => {
  const stub = await stubBroker((_, answer) =>
    answer.json({ delegations: [], next_cursor: null, scanned_to: null }),
  );
  const before = Date.now();
  await run(["list", "--since", "1d12h"], { env: { url: stub.url, token: "t" } });
  const since = Date.parse(String(stub.seen.at(-1)?.query.get("since"))) + 1.5 * 86_400_000;
  expect(since).toBeGreaterThanOrEqual(before);
  expect(since).toBeLessThanOrEqual(Date.now());
});
