/** The audit entry of a changed agent: the values before and after, within its size limit. */
import { expect, test } from "vitest";
import { auditEntrySchema } from "../../../src/schema/audit.ts";
import { LIMITS } from "../../../src/schema/limits.ts";
import { client, OPERATOR, startBroker } from "../../support/broker.ts";
import { lines } from "../broker/cli.ts";
import { run as runHere } from "../fake-host.ts";

async function setup() {
  const { url } = await startBroker();
  const api = client(url);
  await api.agent("scout", { limits: { max_working: 4 }, accepts_from: ["caller:ci"] });
  const audit = async (...more: string[]) =>
    (
      await runHere(["audit", "--wide", "--action", "agent.update", ...more], {
        env: { url, token: OPERATOR },
      })
    ).stdout;
  const patch = (body: unknown) => api.call("PATCH", "/v1/agents/scout", body);
  return { audit, patch };
}

test("old and new values are shown, and which of them are defaults", async () => {
  const { audit, patch } = await setup();
  await patch({ limits: { max_working: 8 }, accepts_from: null, description: "x".repeat(300) });
  expect(await audit()).toContain(
    'description changed, limits.max_working: 4 → 8, accepts_from: ["caller:ci"] → ["*"] (default)\n',
  );
  expect(lines(auditEntrySchema, await audit("--json"))).toMatchObject([
    {
      details: {
        changed: ["description", "limits.max_working"],
        reset: ["accepts_from"],
        before: { "limits.max_working": 4, accepts_from: ["caller:ci"] },
        after: { "limits.max_working": 8, accepts_from: ["*"] },
      },
    },
  ]);
});

test("a URL's query is not logged, and an entry stays within its bound", async () => {
  const { audit, patch } = await setup();
  expect(
    (await patch({ delivery: { mode: "push", url: "https://a2a.example/scout?key=s3cret" } })).status,
  ).toBeLessThan(300);
  const [entry] = lines(auditEntrySchema, await audit("--json"));
  expect(entry?.details.after).toEqual({ delivery: { mode: "push", url: "https://a2a.example/scout" } });
  expect(JSON.stringify(entry)).not.toContain("s3cret");

  const long = (n: number) => Array.from({ length: n }, (_, at) => `caller:name-${at}`);
  await patch({
    version: "v".repeat(64),
    description: "d".repeat(190),
    accepts_from: long(10),
    skills: [{ id: "s", name: "n".repeat(100), description: "", tags: [] }],
    limits: { max_attempts: 9, lease_seconds: 9, max_waiting: 9, interrupt_ttl_seconds: 9 },
    backoff: { initial_ms: 9, factor: 9, max_ms: 9, jitter: 0.9 },
  });
  const [large] = lines(auditEntrySchema, await audit("--json", "--limit", "1"));
  expect(large?.details.changed).toHaveLength(12);
  expect(Object.keys(Object(large?.details.after)).length).toBeGreaterThan(2);
  expect(JSON.stringify(large?.details).length).toBeLessThanOrEqual(LIMITS.audit_entry_bytes.value);
});
