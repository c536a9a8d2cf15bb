/** Every bound is driven to its limit: by a driver that measures memory, or by a test. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { AT_REST, IN_FILES, IN_FLIGHT, type LimitName } from "../../src/schema/limits.ts";
import { DRIVERS } from "./drivers.ts";

/** The test that drives a bound, and a text in that file which proves it. */
const TESTS: Partial<Record<LimitName, readonly [file: string, words: string]>> = {
  metadata_bytes: ["test/limits/shard-events.slow.test.ts", "LIMITS.metadata_bytes"],
  usage_attempts: ["test/lifecycle/usage.test.ts", "LIMITS.usage_attempts"],
  checkpoint_bytes: ["test/doors/rest/checkpoints.test.ts", "what is too large is refused"],
  delegation_events: ["test/limits/at-rest.slow.test.ts", "LIMITS.delegation_events"],
  pushes: ["test/flows/push-notifications.test.ts", "LIMITS.pushes"],
  queued_calls: ["test/limits/queued-calls.test.ts", "LIMITS.queued_calls"],
  file_hours: ["test/files/upload.test.ts", "an upload that is not continued expires"],
  awaited: ["test/flows/wait-for-children.test.ts", "LIMITS.awaited.value"],
  budget_grace: ["test/lifecycle/budget.test.ts", "clock.offset_ms = 30_500"],
  awaited_bytes: ["test/flows/wait-for-children.test.ts", "LIMITS.awaited_bytes.value"],
  children: ["test/limits/at-rest.slow.test.ts", "LIMITS.children"],
  idempotency_hours: ["test/engine/delegations/idempotency.test.ts", "86_400"],
  void_minutes: ["test/doors/rest/idempotency.test.ts", "void_minutes"],
  live_events: ["test/limits/shard-events.slow.test.ts", "LIMITS.live_events"],
  live_bytes: ["test/limits/shard-events.slow.test.ts", "LIMITS.live_bytes"],
  delegator_percent: ["test/limits/delegator-share.slow.test.ts", "the limit follows maxmemory"],
  memory_new_work: ["test/faults/memory.test.ts", "when memory is short new work is refused"],
  memory_ceiling: ["test/faults/ceiling.slow.test.ts", "test.each("],
  ceiling_bytes: ["test/faults/ceiling.slow.test.ts", "LIMITS.ceiling_bytes"],
  agents: ["test/doors/http/agent-and-token-limits.test.ts", "agents are bounded in number"],
  agent_bytes: ["test/doors/rest/agents.test.ts", "one agent's settings are bounded in bytes"],
  credentials_bytes: [
    "test/relay/delivery-credentials.test.ts",
    "invalid credentials are refused with their path and without their content",
  ],
  tokens: ["test/doors/http/agent-and-token-limits.test.ts", "tokens are bounded in number"],
  login_sessions: ["test/doors/access/sessions.test.ts", "LIMITS.login_sessions"],
  login_sessions_total: ["test/doors/access/sessions.test.ts", "LIMITS.login_sessions_total"],
  login_hours: ["test/doors/access/sessions.test.ts", "for 12 hours"],
  login_codes: ["test/doors/access/sessions.test.ts", "LIMITS.login_codes"],
  login_code_minutes: ["test/doors/access/sessions.test.ts", "expires after ten minutes"],
  workers: ["test/doors/rest/workers.test.ts", "workers are bounded in number"],
  worker_seconds: ["test/doors/rest/workers.test.ts", "workers are bounded in number"],
  audit_entries: ["test/doors/rest/audit.test.ts", "it is bounded"],
  audit_share: ["test/doors/rest/audit.test.ts", "cannot push out"],
  audit_entry_bytes: ["test/cli/commands/audit.test.ts", "audit_entry_bytes"],
  audit_days: ["test/doors/rest/audit.test.ts", "old ones are deleted"],
  schedules: ["test/doors/rest/schedules.test.ts", "LIMITS.schedules.value"],
  schedule_bytes: ["test/doors/rest/schedules.test.ts", "LIMITS.schedule_bytes.value"],
  schedule_every_seconds: ["test/doors/rest/schedules.test.ts", "every_seconds: 0.5"],
  schedule_missed_seconds: ["test/engine/schedules/ticks.test.ts", "LIMITS.schedule_missed_seconds.value"],
  schedule_missed: ["test/engine/schedules/ticks.test.ts", "LIMITS.schedule_missed.value"],
  subscriptions: ["test/doors/rest/subscriptions.test.ts", "LIMITS.subscriptions.value"],
  subscription_channels: ["test/doors/rest/subscriptions.test.ts", "LIMITS.subscription_channels.value"],
  subscription_bytes: ["test/doors/rest/subscriptions.test.ts", "LIMITS.subscription_bytes.value"],
  subscription_tests: ["test/doors/rest/subscriptions.test.ts", "LIMITS.subscription_tests.value"],
  notices_waiting: ["test/doors/rest/subscriptions.test.ts", "LIMITS.notices_waiting.value"],
  links: ["test/flows/links.test.ts", "LIMITS.links.value"],
  schedule_runs: ["test/engine/schedules/ticks.test.ts", "LIMITS.schedule_runs.value"],
  rules: ["test/flows/rules.test.ts", "LIMITS.rules.value"],
  agent_rules: ["test/flows/rules.test.ts", "LIMITS.agent_rules.value"],
  rule_bytes: ["test/engine/rules/match.test.ts", "4096 bytes"],
  rule_uses: ["test/flows/rules.test.ts", "LIMITS.rule_uses.value"],
  rule_days: ["test/flows/rules.test.ts", "LIMITS.rule_days.value"],
  rule_steps: ["test/engine/rules/match.test.ts", "LIMITS.rule_steps.value"],
  stats_subjects: ["test/doors/rest/stats.test.ts", "LIMITS.stats_subjects"],
  stats_codes: ["test/doors/rest/stats.test.ts", "LIMITS.stats_codes"],
  gateway_request_bytes: ["test/doors/http/inflow.test.ts", "maxTotal"],
  unknown_connections: ["test/doors/http/connections.test.ts", "mostUnknown"],
  headers: ["test/doors/http/connection.test.ts", "LIMITS.headers"],
  anonymous_header_bytes: ["test/doors/http/connections.test.ts", "LIMITS.anonymous_header_bytes"],
  anonymous_unread_bytes: ["test/doors/http/inflow.test.ts", "maxOfAddresses"],
  gateway_header_bytes: ["test/doors/http/connections.test.ts", "LIMITS.gateway_header_bytes"],
  header_seconds: ["test/doors/http/slow-senders.slow.test.ts", "headersMs"],
  request_seconds: ["test/doors/http/slow-senders.slow.test.ts", "requestMs"],
  progress_per_second: ["test/doors/rest/limits.test.ts", "LIMITS.progress_per_second"],
  mcp_message_bytes: ["test/limits/shapes.test.ts", "LIMITS.mcp_message_bytes"],
  mcp_message_values: ["test/limits/shapes.test.ts", "LIMITS.mcp_message_values"],
  gateway_unread_bytes: ["test/doors/http/inflow.test.ts", "maxTotal"],
  stalled_seconds: ["test/doors/http/slow-readers.slow.test.ts", "LIMITS.stalled_seconds"],
  auto_approve_bytes: ["test/flows/auto-approve.test.ts", "LIMITS.auto_approve_bytes"],
  reads: ["test/engine/access/read-limiter.test.ts", "LIMITS.reads"],
};

test.each([...AT_REST, ...IN_FILES, ...IN_FLIGHT])("%s is driven to its limit", (name) => {
  if (DRIVERS[name]) return;
  const [file, words] = TESTS[name] ?? [];
  if (file === undefined || words === undefined) {
    throw new Error(`Add a driver for '${name}' to drivers.ts, or name the test that drives it here.`);
  }
  const path = fileURLToPath(new URL(`../../${file}`, import.meta.url));
  expect(readFileSync(path, "utf8")).toContain(words);
});
