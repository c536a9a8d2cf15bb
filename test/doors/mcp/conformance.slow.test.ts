/**
 * The MCP conformance kit against `/mcp`, in both eras. The kit's fixtures are added to the broker's tools only for this
 * test; its tasks are delegations that an agent completes.
 */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse } from "yaml";
import * as z from "zod";
import { OPERATOR, startBroker } from "../../support/broker.ts";
import { conformance } from "../../support/conformance/extension.ts";
import { runKit, startTokenProxy } from "../../support/conformance/kit.ts";
import { startFixtureAgent } from "../../support/conformance/tasks.ts";
import { mcpClient } from "../../support/mcp.ts";

const expectedSchema = z.record(
  z.string(),
  z.array(z.strictObject({ reason: z.string().min(40), checks: z.record(z.string(), z.string()) })),
);
const EXPECTED = expectedSchema.parse(
  parse(readFileSync(new URL("./conformance.yml", import.meta.url), "utf8")),
);

/** The minimum that must pass, so that a kit that checks nothing fails. */
const REVISIONS = [
  {
    revision: "2025-11-25",
    scenarios: 33,
    passed: 79,
    whole: ["server-initialize", "dns-rebinding-protection", "tools-call-elicitation"],
  },
  {
    revision: "2026-07-28",
    scenarios: 50,
    passed: 185,
    whole: [
      "tasks-lifecycle",
      "tasks-capability-negotiation",
      "tasks-wire-fields",
      "tasks-request-state-removal",
      "tasks-mrtr-input",
      "tasks-request-headers",
      "tasks-dispatch-and-envelope",
      "tasks-required-task-error",
      "tasks-mrtr-composition",
      "http-header-validation",
      "dns-rebinding-protection",
      "caching",
    ],
  },
];

test.each(REVISIONS)(
  "$revision: every check of the kit passes, except those listed with a reason",
  async ({ revision, scenarios, passed, whole }) => {
    const { url } = await startBroker({ mcpExtension: conformance, sweepEveryMs: 100 });
    await startFixtureAgent(url);
    const checks = await runKit(`${await startTokenProxy(url, OPERATOR)}/mcp`, revision);
    const bad = checks.filter(({ status }) => status !== "SUCCESS" && status !== "INFO");
    const found = Object.fromEntries(bad.map(({ scenario, id, status }) => [`${scenario}:${id}`, status]));
    const listed = Object.assign({}, ...(EXPECTED[revision] ?? []).map((entry) => entry.checks));
    const words = bad.map((check) => `${check.scenario}:${check.id} ${check.errorMessage ?? ""}`).join("\n");
    expect(found, words).toEqual(listed);

    const good = checks.filter(({ status }) => status === "SUCCESS");
    expect(new Set(checks.map(({ scenario }) => scenario)).size).toBeGreaterThanOrEqual(scenarios);
    expect(good.length).toBeGreaterThanOrEqual(passed);
    const passing = new Set(good.map(({ scenario }) => scenario));
    for (const scenario of whole) {
      expect(passing, scenario).toContain(scenario);
      expect(bad.map((check) => check.scenario)).not.toContain(scenario);
    }
  },
  600_000,
);

test("the kit's tools are absent unless enabled", async () => {
  const { url } = await startBroker();
  const names = new Set(conformance.tools.map(({ listed }) => listed.name));
  for (const era of ["modern", "legacy"] as const) {
    const client = await mcpClient(url, OPERATOR, era);
    const { tools } = await client.listTools();
    expect(tools.filter(({ name }) => names.has(name))).toEqual([]);
    expect(Object.keys(client.getServerCapabilities() ?? {})).not.toContain("prompts");
    await expect(client.callTool({ name: "greet", arguments: {} })).rejects.toMatchObject({ code: -32602 });
  }
});
