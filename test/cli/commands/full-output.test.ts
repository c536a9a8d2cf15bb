/** Output that cannot be written, of every kind of command. */
import { existsSync } from "node:fs";
import { Writable } from "node:stream";
import { expect, test } from "vitest";
import { as, client, OPERATOR, startBroker } from "../../support/broker.ts";
import { until } from "../../support/until.ts";
import { run } from "../fake-host.ts";

const full = () =>
  new Writable({
    write: (_chunk, _encoding, done) => done(Object.assign(new Error("ENOSPC: write"), { code: "ENOSPC" })),
  });

test("a command whose output cannot be written fails by name", async () => {
  const { url } = await startBroker();
  const api = client(url);
  await api.agent("scout");
  await as(url, "caller:alice");
  const make = async () => String((await api.delegate("scout", { task: "dig" })).body.id);
  const id = await make();
  const artifacts = [{ artifactId: "a", name: "a.txt", parts: [{ text: "one" }] }];
  await api.reply((await api.lease("scout")).body.leases[0].lease_id, { artifacts });
  const asks = await make();
  await api.interrupt((await api.lease("scout")).body.leases[0].lease_id, { text: "?" });
  await until(async () => (await api.call("GET", "/v1/agents/scout/workers")).body.workers.length > 0);
  const schedule = await api.call("POST", "/v1/schedules", {
    delegation: { target: "scout", task: "read" },
    every_seconds: 3600,
  });
  const reads = [
    ["list"],
    ["list", "--json"],
    ["list", "--tree"],
    ["get", id],
    ["get", id, "--json"],
    ["get", id, "--reply"],
    ["get", id, "--history"],
    ["get", id, "--artifact", "a"],
    ["get", id, "--artifact", "a", "-o", "-"],
    ["logs", id],
    ["inbox", "--json"],
    ["results"],
    ["watch", id],
    ["watch", id, "--json"],
    ["agent", "list"],
    ["agent", "get", "scout"],
    ["agent", "workers", "scout"],
    ["token", "list"],
    ["status"],
    ["status", "--json"],
    ["top", "--once"],
    ["stats"],
    ["audit"],
    ["doctor"],
    ["doctor", "--json"],
    ["completion", "--list", "agents"],
  ];
  // They print what they have done, so to run them again may do it twice.
  const changes = [
    ["answer", asks, "yes"],
    ["delegate", "scout", "x"],
    ["delegate", "scout", "x", "--json"],
    ["message", await make(), "x"],
    ["cancel", await make()],
    ["agent", "put", "scout"],
    ["agent", "pause", "scout"],
    ["agent", "resume", "scout"],
    ["token", "create", "caller:x"],
    ["schedule", "create", "scout", "x", "--every", "1h"],
    ["rules", "create", "scout", "write"],
    ["schedule", "change", schedule.body.id, "--name", "reading"],
    ["notify", "create", "--agent", "nobody", "--ntfy", "https://ntfy.sh/topic"],
    ["invite", "zoe"],
    ["sessions", "link"],
    ["delete", id],
  ];
  for (const [commands, again] of [
    [reads, "Then run the command again."],
    [changes, "The command has taken effect, so check before you run it again."],
  ] as const) {
    for (const argv of commands) {
      const { code, stderr } = await run(argv, { env: { url, token: OPERATOR }, stdout: full() });
      expect([argv, code, stderr]).toEqual([
        argv,
        78,
        expect.stringContaining("cannot write the output: no space"),
      ]);
      expect(stderr).toContain(again);
    }
  }
});

test.skipIf(!existsSync("/dev/full"))("nor can an artifact be saved to a full disk", async () => {
  const { url } = await startBroker();
  const api = client(url);
  await api.agent("scout");
  const { id } = (await api.delegate("scout")).body;
  const artifacts = [{ artifactId: "a", name: "a.txt", parts: [{ text: "one" }] }];
  await api.reply((await api.lease("scout")).body.leases[0].lease_id, { artifacts });
  const argv = ["get", id, "--artifact", "a", "-o", "/dev/full", "--force"];
  const { code, stderr } = await run(argv, { env: { url, token: OPERATOR } });
  expect([code, stderr]).toEqual([
    78,
    "errand: cannot write /dev/full: no space is left on the device (ENOSPC). Make room or write to another place. Then run the command again.\n",
  ]);
});
