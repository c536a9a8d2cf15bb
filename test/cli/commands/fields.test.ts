/** `-o` and `--no-headers` of every command that prints a table. */
import { expect, test } from "vitest";
import { as, client, OPERATOR, startBroker } from "../../support/broker.ts";
import { until } from "../../support/until.ts";
import { run } from "../fake-host.ts";

async function world() {
  const { url } = await startBroker();
  const api = client(url);
  await api.agent("scout", { description: "counts words" });
  const alice = await as(url, "caller:alice");
  const session = await client(url, alice.token).call("POST", "/v1/sessions");
  const scheduled = { every_seconds: 3600, paused: true, delegation: { target: "scout", task: "x" } };
  const schedule = (await api.call("POST", "/v1/schedules", scheduled)).body.id;
  const { id } = (await api.delegate("scout", { task: "one" })).body;
  await api.reply((await api.lease("scout", { worker_id: "scout-host" })).body.leases[0].lease_id);
  const entries = (await api.call("GET", "/v1/audit?subject=scout")).body.entries;
  const env = { url, token: OPERATOR };
  const inPipe = async (...argv: string[]) => (await run(argv, { env })).stdout;
  const onTerminal = async (...argv: string[]) =>
    (await run(argv, { env, tty: { stdout: true }, childEnv: { NO_COLOR: "1" } })).stdout;
  await until(async () => (await api.call("GET", "/v1/agents/scout/workers")).body.workers.length === 1);
  const ruled = { agent: "scout", action: "write", decision: "approve" };
  const rule = (await api.call("POST", "/v1/rules", ruled)).body.id;
  const told = { events: ["question"], deliver: [{ kind: "ntfy", url: "https://ntfy.sh/topic" }] };
  const subscription = (await api.call("POST", "/v1/subscriptions", told)).body.id;
  return {
    id,
    alice,
    rule,
    subscription,
    schedule,
    session: session.body.id,
    entry: entries[0].id,
    inPipe,
    onTerminal,
  };
}

test("-o name prints one whole identifier per line, into a pipe and on a terminal", async () => {
  const { id, alice, rule, subscription, schedule, session, entry, inPipe, onTerminal } = await world();
  for (const [command, name] of [
    ["list", id],
    ["list --tree", id],
    ["results", id],
    ["agent list", "scout"],
    ["agent get scout", "scout"],
    ["agent workers scout", "scout-host"],
    ["token list", alice.tokenId],
    ["schedule list", schedule],
    ["rules list", rule],
    ["notify list", subscription],
    ["sessions list", session],
    ["audit --subject scout", entry],
  ] as const) {
    const argv = [...command.split(" "), "-o", "name"];
    expect([command, await inPipe(...argv)]).toEqual([command, `${name}\n`]);
    expect([command, await onTerminal(...argv)]).toEqual([command, `${name}\n`]);
  }
});

test("an id that is piped is whole, so that it is found however old it becomes", async () => {
  const { id, inPipe, onTerminal } = await world();
  expect(await inPipe("list", "-o", "id")).toBe(`${id}\n`);
  expect(await inPipe("results", "-o", "id")).toBe(`${id}\n`);
  expect(await onTerminal("list", "-o", "id")).not.toContain(id);
});

test("--no-headers leaves out the header line", async () => {
  const { inPipe, onTerminal } = await world();
  for (const command of [
    "list",
    "list --wide",
    "list --tree",
    "list -o id,state",
    "results",
    "agent list",
    "agent workers scout",
    "token list",
    "schedule list --wide",
    "rules list --wide",
    "notify list --wide",
    "sessions list",
    "audit --wide",
    "stats",
  ]) {
    const argv = command.split(" ");
    for (const printed of [inPipe, onTerminal]) {
      const lines = (await printed(...argv)).split("\n");
      const without = (await printed(...argv, "--no-headers")).split("\n");
      // Columns are as wide as their cells, and ages grow.
      const words = (line: string) =>
        line
          .replace(/\b\d+s\b/g, "0s")
          .split(/ +/)
          .join(" ");
      expect([command, without.map(words)]).toEqual([command, lines.slice(1).map(words)]);
    }
  }
});

test("agent get has the fields of agent list", async () => {
  const { inPipe } = await world();
  expect(await inPipe("agent", "get", "scout", "-o", "presence")).toBe("online\n");
  expect(await inPipe("agent", "get", "scout", "-o", "name,queued,description")).toBe(
    "NAME   QUEUED  DESCRIPTION\nscout  0       counts words\n",
  );
  expect(JSON.parse(await inPipe("agent", "get", "scout", "-o", "presence", "--json"))).toMatchObject({
    name: "scout",
  });
});

test.each([
  ["json", "use --json instead of -o"],
  ["yaml", "use --json instead of -o"],
  ["jsonpath={.items[0].id}", "use --json instead of -o"],
  ["wide", "use --wide instead of -o"],
  ["stat", "Did you mean state?"],
])("-o %s of another program says what to use", async (field, said) => {
  const { code, stderr } = await run(["list", "-o", field]);
  expect([code, stderr]).toEqual([64, expect.stringContaining(said)]);
});
