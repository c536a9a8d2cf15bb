/** `errand top` against a real gateway: live on a screen in this process, and one snapshot. */
import { expect, test } from "vitest";
import { readSnapshot } from "../../../src/cli/top/read.ts";
import { TopView } from "../../../src/cli/top/top-view.ts";
import { Admin } from "../../../src/client/admin.ts";
import { Pages } from "../../../src/client/pages.ts";
import { as, OPERATOR } from "../../support/broker.ts";
import { until } from "../../support/until.ts";
import { setup } from "../broker/cli.ts";
import { host } from "../fake-host.ts";
import { KEYS, screenHere } from "../screen/screen-here.ts";

async function scene() {
  const setting = await setup();
  const { api, clock } = setting;
  for (const name of ["alpha", "busy", "zeta"]) await api.agent(name);
  await api.delegate("busy");
  const [lease] = (await api.lease("busy", { worker_id: "w1" })).body.leases;
  await api.interrupt(lease.lease_id, { text: "Which\u001b[2J branch?", expires_in_seconds: 86_400 });
  await api.delegate("busy");
  await api.lease("busy", { worker_id: "w2", lease_seconds: 3600 });
  await api.delegate("busy");
  clock.offset_ms += 240_000;
  return setting;
}

const ROW = /^busy +(?:online|stale|offline) +1 +1 +0 +1 +1 +0 +4 min$/m;

test("busy agents come first, events refresh the screen, and it fits", async () => {
  const { api, url, gateway } = await scene();
  const screen = screenHere(["top"], { env: { url, token: OPERATOR } });
  await screen.shows(ROW);
  const text = screen.text();
  expect(text).toMatch(/^errand top, operator +\d{4}-/);
  expect(text).toMatch(/^agents +3, \d online$/m);
  expect(text).toMatch(/^work +1 queued, oldest 4 min, 0 delayed, 1 running, 1 asking$/m);
  expect(text).toMatch(/^last hour +3 sent, 0 completed, 0 failed, 0 canceled$/m);
  expect(text).toMatch(/^AGENT .*\nbusy .*\nalpha .*\nzeta /m);
  expect(text).toMatch(/^QUESTION .*\n\S{8} +busy +operator +1 d +Which branch\?$/m);
  await api.agent("new");
  await api.delegate("new");
  await screen.shows(/^AGENT .*\nbusy .*\nnew .*\nalpha /m);
  screen.resize(40, 8);
  await screen.shows(/^errand top/);
  screen.type(KEYS.down);
  await screen.shows(/\nnew +/);
  // On very few rows, the agents come first; and ids are whole on the narrowest screen.
  screen.resize(20, 6);
  await screen.shows(/^errand top.*\n *\n\S+.*\nnew /);
  screen.resize(30, 24);
  await screen.shows(/^\w{8} {2}b/m);
  screen.resize(80, 24);
  // A broker that goes away is no reason to end.
  await gateway.close({ idleGrace: false });
  await screen.shows("The broker is unavailable; retrying.");
  screen.type("q");
  expect(await screen.done).toBe(0);
  expect([screen.isRestored(), screen.stderr()]).toEqual([true, ""]);
});

test("an event refreshes what is shown, without the timer", async () => {
  const { api, url } = await setup();
  const connection = { url, token: OPERATOR };
  const source = { admin: new Admin(connection), pages: new Pages(connection) };
  const first = await readSnapshot(source, AbortSignal.timeout(60_000));
  const view = new TopView(host(), connection, first, 3_600_000);
  const ended = new AbortController();
  let drawn = 0;
  const running = view.run(() => {
    drawn += 1;
  }, ended.signal);
  await until(() => drawn > 0, { what: "the first reading" });
  await api.agent("solo");
  await api.delegate("solo");
  const text = () => view.draw({ columns: 80, rows: 24 }).lines.join("\n");
  await until(() => /^solo .* 1 +0 +0 +0 /m.test(text()), { what: "the delegation" });
  ended.abort();
  await expect(running).rejects.toThrow();
});

test("one snapshot without a terminal, with --once and with --json, as far as the token may see", async () => {
  const { run, url } = await scene();
  const plain = await run(["top"]);
  expect([plain.code, plain.stderr]).toEqual([0, ""]);
  expect(plain.stdout).toMatch(ROW);
  const once = screenHere(["top", "--once"], { env: { url, token: OPERATOR } });
  expect(await once.done).toBe(0);
  expect(once.text()).toMatch(ROW);

  const { token } = await as(url, "caller:alice");
  const json = await run(["top", "--json"], { token });
  const { agents, totals, questions, principal } = JSON.parse(json.stdout);
  expect([principal, questions]).toEqual(["caller:alice", []]);
  expect(agents[0]).toMatchObject({
    name: "busy",
    workers: null,
    oldest_seconds: null,
    counts: { working: 1 },
  });
  expect(totals).toMatchObject({ waiting: 1, working: 1, interrupted: 1, oldest_seconds: null });
});
