/** A full-screen command on a real terminal: however it ends, the terminal is as it was. */
import { constants } from "node:os";
import { expect, test } from "vitest";
import { as, client, request, startBroker } from "../../support/broker.ts";
import { openTerminal } from "../../support/screen.ts";
import { until } from "../../support/until.ts";

test("the terminal is restored after a quit, Ctrl-C, SIGTERM and an error; and the view follows its size", async () => {
  const { url } = await startBroker();
  const alice = await as(url, "caller:alice");
  const api = client(url);
  await api.agent("asker");
  await alice.delegate("asker", { task: "go" });
  const [lease] = (await api.lease("asker")).body.leases;
  await api.interrupt(lease.lease_id, { text: "Which branch?" });
  const open = (command: string) => openTerminal([command], { ERRAND_URL: url, ERRAND_TOKEN: alice.token });
  const ends: [string, (terminal: ReturnType<typeof open>) => unknown, number, string][] = [
    ["inbox", ({ type }) => type("q"), 0, ""],
    ["inbox", ({ type }) => type("\u0003"), 130, ""],
    ["top", ({ kill }) => kill(constants.signals.SIGTERM), 143, ""],
    ["inbox", () => request(url, "DELETE", `/v1/tokens/${alice.tokenId}`), 77, "errand:"],
  ];
  const terminals = ends.map(([command]) => open(command));
  await until(() => terminals.every(({ text }) => text().includes("Which branch?")), {
    what: "the question",
  });
  const [first] = terminals;
  if (!first) throw new Error("no terminal");
  expect(first.rows()).toHaveLength(24);
  first.resize(60, 12);
  await until(() => first.rows().length === 12 && first.text().includes("Which b"), {
    what: "12 rows",
  });
  expect(first.rows().at(-1)).toMatch(/^↑↓ move .*…$/);
  first.type("\r");
  await until(() => first.text().includes("Task"), { what: "the question" });
  first.type("q");
  await until(() => first.text().includes("Inbox"), { what: "the list" });
  for (const [at, [, end, code, said]] of ends.entries()) {
    const terminal = terminals[at];
    if (!terminal) throw new Error("no terminal");
    await end(terminal);
    expect([at, await terminal.ended()]).toEqual([at, { code, isRestored: true }]);
    expect(terminal.text()).toContain(said);
    expect(terminal.text()).not.toContain("Which branch?");
  }
}, 180_000);
