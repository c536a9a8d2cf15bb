/**
 * Delegates one task each to many runs of an agent, then collects all results as they arrive, in any order, failures
 * included. Needs ERRAND_URL and a caller's ERRAND_TOKEN.
 * Usage: fan-out.ts AGENT TASK... Limit: it collects in one process; store the cursor to continue in another.
 */
import { Delegator, textOf } from "../src/index.ts";

const [target, ...tasks] = process.argv.slice(2);
const HELP = `usage: fan-out.ts AGENT TASK...

Delegates each task to the agent, and prints the results as they arrive. Reads ERRAND_URL and
ERRAND_TOKEN (a caller's).
`;
if (process.argv.includes("--help")) {
  process.stdout.write(HELP);
  process.exit(0);
}
if (target === undefined || tasks.length === 0) {
  process.stderr.write(HELP);
  process.exit(64);
}

const delegator = new Delegator();
// One label for all, to distinguish them from other delegations in the inbox.
const context_id = `fan-out-${Date.now()}-${process.pid}`;
const sent = await Promise.all(tasks.map((task) => delegator.delegate({ target, task, context_id })));
const open = new Set(sent.map(({ id }) => id));
process.stdout.write(`${open.size} sent to ${target}\n`);

let failed = 0;
for await (const { delegation } of delegator.results()) {
  if (!open.delete(delegation.id)) continue;
  const { state, message, reply, error } = delegation;
  if (state !== "completed") failed += 1;
  process.stdout.write(`${textOf(message)}: ${error ? error.message : reply ? textOf(reply) : state}\n`);
  if (open.size === 0) break;
}
process.stdout.write(`${tasks.length - failed} done, ${failed} failed\n`);
process.exitCode = failed === 0 ? 0 : 1;
