/** `errand relay` as a process between a real gateway and a real A2A server. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import * as z from "zod";
import { startA2aServer } from "../../support/a2a-server.ts";
import { startProxy } from "../../support/forward-proxy.ts";
import { FOREIGN_ANSWERS, startFront } from "../../support/front.ts";
import { watching } from "../../support/relaying.ts";
import { until } from "../../support/until.ts";
import { lines, setup } from "./cli.ts";

const CREDENTIAL = "remote-credential-canary";

test("relays with credentials from a file, and logs its work but no credentials", async () => {
  const server = await startA2aServer({
    bearer: CREDENTIAL,
    turn: (turn) => turn.message(`hi ${turn.text}`),
  });
  const { api, dir, start } = await setup();
  writeFileSync(join(dir, "token"), `${CREDENTIAL}\n`);
  const args = ["relay", "--agent", "remote", "--to", server.url, "--token-file", "token"];
  const run = start([...args, "--header", "X-Tenant: one"]);
  await until(() => run.stderr().includes("relaying for remote"));
  const { delegate, ended } = watching(api);
  const id = await delegate("you");
  expect(await ended(id)).toMatchObject({ state: "completed", reply: { parts: [{ text: "hi you" }] } });
  expect(server.headers.map((headers) => headers["x-tenant"])).toEqual(["one"]);
  run.child.kill("SIGINT");
  expect(await run.ended()).toBe(130);
  expect(run.stderr()).toContain(`leased ${id} from operator, attempt 1`);
  expect(run.stderr()).toMatch(new RegExp(`${id} from operator completed in `));
  expect([run.stdout(), run.stderr()].join()).not.toContain("canary");
});

test("--once --json prints one object per line and exits 0; the token comes from the environment", async () => {
  const server = await startA2aServer({ bearer: CREDENTIAL, turn: (turn) => turn.message("once") });
  const { api, run } = await setup();
  await api.agent("remote");
  const { body } = await api.delegate("remote");
  const env = { ERRAND_REMOTE_TOKEN: CREDENTIAL };
  const { code, stdout } = await run(["relay", "--agent", "remote", "--to", server.url, "--once", "--json"], {
    env,
  });
  expect(code).toBe(0);
  const events = lines(z.looseObject({ event: z.string(), delegation_id: z.string() }), stdout);
  expect(events.map(({ event }) => event)).toEqual(["leased", "replied"]);
  expect(events[1]).toMatchObject({ delegation_id: body.id, state: "completed" });
});

test("the server is called through ERRAND_EGRESS_PROXY, and never through HTTP_PROXY", async () => {
  const server = await startA2aServer({ turn: (turn) => turn.message("hi") });
  const proxy = await startProxy({ to: Number(new URL(server.url).port) });
  const { api, run } = await setup();
  await api.agent("remote");
  await api.delegate("remote");
  vi.stubEnv("HTTP_PROXY", "http://127.0.0.1:1");
  const env = { ERRAND_EGRESS_PROXY: `http://${proxy.place}` };
  const args = ["relay", "--agent", "remote", "--to", "http://a2a.corp.invalid", "--once", "--json"];
  const { code, stdout } = await run(args, { env });
  vi.unstubAllEnvs();
  expect([code, stdout]).toEqual([0, expect.stringContaining('"state":"completed"')]);
  for (const line of proxy.seen) expect(line).toMatch(/^(?:GET|POST) http:\/\/a2a\.corp\.invalid\//);
  expect(proxy.seen).not.toEqual([]);
});

test("--credentials-file takes another scheme", async () => {
  const server = await startA2aServer({ turn: (turn) => turn.message("in") });
  const { api, dir, run } = await setup();
  const credentials = { scheme: "basic", username: "u", password: CREDENTIAL };
  writeFileSync(join(dir, "basic.json"), JSON.stringify(credentials));
  await api.agent("remote");
  await api.delegate("remote");
  const args = ["relay", "--agent", "remote", "--to", server.url, "--once"];
  const { code, stderr } = await run([...args, "--credentials-file", join(dir, "basic.json")], {
    env: { ERRAND_REMOTE_TOKEN: "unused" },
  });
  expect(code).toBe(0);
  expect(stderr).not.toContain("canary");
  const basic = Buffer.from(`u:${CREDENTIAL}`).toString("base64");
  expect(server.headers.map(({ authorization }) => authorization)).toEqual([`Basic ${basic}`]);
});

test("an unreachable server is reported at once, and used when it is up", async () => {
  const server = await startA2aServer({ turn: (turn) => turn.message(`hi ${turn.text}`) });
  const { api, start } = await setup();
  await server.kill();
  const run = start(["relay", "--agent", "remote", "--to", server.url]);
  await until(() => run.stderr().includes("yet: the A2A server cannot be reached"), {
    timeoutMs: 30_000,
  });
  await server.restart();
  const { delegate, ended } = watching(api);
  expect(await ended(await delegate("you"))).toMatchObject({ state: "completed" });
  run.child.kill("SIGINT");
  expect(await run.ended()).toBe(130);
});

test("usage errors never show a possible credential", async () => {
  const { run } = await setup();
  for (const [more, said] of [
    [["--to", "http://h", "--header", CREDENTIAL], "--header must be '<name>: <value>'."],
    [["--to", `http://user:${CREDENTIAL}@h`], "--to must be an http or https URL without user and password."],
    [["--to", "http://h", "--token-file", "no-such-file"], "cannot read the token file no-such-file"],
    [[], "required option '--to <url>' not specified"],
  ] as const) {
    const { code, stderr } = await run(["relay", "--agent", "remote", ...more]);
    expect(code).toBe(64);
    expect(stderr).toContain(said);
    expect(stderr).not.toContain("canary");
  }
});

test("at a first start, an address where no A2A server is ends the relay at once; one that is away does not", async () => {
  const { run } = await setup();
  const front = await startFront("http://127.0.0.1:9");
  for (const kind of ["404 of an ingress", "200 with a page", "302 to a sign-in", "401 with a page"]) {
    front.replace(FOREIGN_ANSWERS[kind] ?? (() => undefined));
    const { code, stderr } = await run(["relay", "--agent", "remote", "--to", front.url]);
    expect([kind, code, stderr]).toEqual([
      kind,
      78,
      expect.stringContaining(`cannot relay to ${front.url}: no agent card: ${front.url}`),
    ]);
    expect(stderr).not.toContain("relaying for");
  }
});
