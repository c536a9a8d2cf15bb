/**
 * Compares docs/operations.md and deploy/ with the running broker. Limit: the proxies were tried by hand, Docker was
 * not.
 */
import { spawnSync } from "node:child_process";
import { cpSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { ConfigError, EXIT_CONFIG, readConfig } from "../../src/config.ts";
import { supervisorMetrics } from "../../src/gateways/scrapes.ts";
import { SummedMetrics } from "../../src/telemetry/summed-metrics.ts";
import { as, client, OPERATOR, startBroker } from "../support/broker.ts";
import { startOwnRedis } from "../support/own-redis.ts";
import { errand, freshDir, serveIn } from "../support/program.ts";
import { ROOT } from "./registry.ts";

const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");
const DOC = read("docs/operations.md");

describe("metrics", () => {
  /** The metrics after a story that causes everything that the rules ask for. */
  async function scrape(): Promise<string> {
    const { url, clock, gateway } = await startBroker();
    const api = client(url);
    await api.agent("scout");
    for (let n = 0; n < 3; n += 1) await api.delegate("scout");
    const lease = async () => String((await api.lease("scout")).body.leases[0].lease_id);
    const first = await lease();
    await api.reply(first);
    expect((await api.reply(first, { text: "another" })).status).toBe(409);
    await lease();
    clock.offset_ms = 61_000;
    await gateway.sweep.tick();
    const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${OPERATOR}` } });
    // With several gateways, their supervisor adds its own.
    return (await response.text()) + (await new SummedMetrics().text(supervisorMetrics(2, 0)));
  }

  test("the table names every metric that exists, and no other", async () => {
    const text = await scrape();
    const real = [...text.matchAll(/^# TYPE (errand_\w+)/gm)].map(([, name]) => name);
    const documented = [...DOC.matchAll(/^\| `(errand_\w+)` \|/gm)].map(([, name]) => name);
    expect(documented.sort()).toEqual(real.sort());
  });

  test("the dashboard asks for metrics and labels that exist", async () => {
    const text = await scrape();
    const target = z.object({ expr: z.string() });
    const { panels } = z
      .object({
        panels: z.array(z.object({ id: z.int(), title: z.string(), targets: z.array(target).default([]) })),
      })
      .parse(JSON.parse(read("deploy/grafana.json")));
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const exprs = panels.flatMap(({ title, targets }) => targets.map(({ expr }) => ({ title, expr })));
    expect(exprs.length).toBeGreaterThan(20);
    for (const { title, expr } of exprs) {
      const [, name = ""] = /((?:errand|nodejs|process)_\w+?)(?:_bucket)?(?:[{[ )]|$)/.exec(expr) ?? [];
      expect(text, `${title}: ${expr}`).toContain(`# TYPE ${name} `);
      const series = text.split("\n").filter((line) => new RegExp(`^${name}(?:_bucket)?[{ ]`).test(line));
      // The story makes no callbacks and no pushes.
      if (series.length === 0) expect(name).toMatch(/^errand_(?:callbacks|pushes)_total$/);
      else if (expr.includes("_bucket")) expect(series.join("\n"), title).toContain(`${name}_bucket{le="`);
      const [, group = ""] = /by \((\w+)\)/.exec(expr) ?? [];
      // The server of Prometheus adds the label instance.
      const labels = [group, ...[...expr.matchAll(/(\w+)=~?"/g)].map(([, label]) => label)];
      for (const label of labels.filter((one) => one !== "" && one !== "instance")) {
        if (series.length > 0) expect(series.join("\n"), `${title}: ${label}`).toContain(`${label}="`);
      }
    }
  });

  test("the rules ask for metrics, labels and values that exist", async () => {
    const text = await scrape();
    const rules = z
      .object({
        groups: z.array(z.object({ rules: z.array(z.looseObject({ alert: z.string(), expr: z.string() })) })),
      })
      .parse(parse(read("deploy/prometheus-rules.yml")))
      .groups.flatMap((group) => group.rules);
    expect(rules.length).toBeGreaterThan(5);
    for (const { alert, expr } of rules) {
      const names = [...expr.matchAll(/\b((?:errand|nodejs|process)_\w+)(?:\{([^}]*)\})?/g)];
      if (alert !== "ErrandDown") expect(names.length, alert).toBeGreaterThan(0);
      for (const [, name = "", labels = ""] of names) {
        const series = text.split("\n").filter((line) => new RegExp(`^${name}[{ ]`).test(line));
        expect(series, `${alert}: ${name}`).not.toEqual([]);
        // The label job is Prometheus' own; the story has no failures and no 5xx.
        for (const [, label = "", value = ""] of labels.matchAll(/(\w+)=~?"([^"]*)"/g)) {
          if (label === "job") continue;
          expect(series.join("\n"), `${alert}: ${label}`).toContain(`${label}="`);
          if (["late", "lapse|exhaust"].includes(value))
            expect(series.join("\n")).toMatch(new RegExp(`"(?:${value})"`));
        }
      }
    }
  });
});

test("every variable that the pages name exists", () => {
  const places = ["docs/operations.md", "Dockerfile", "docker-compose.yml", "deploy/errand.service"];
  const names = new Set(places.flatMap((place) => read(place).match(/ERRAND_[A-Z]+(?:_[A-Z]+)*/g) ?? []));
  expect(names.size).toBeGreaterThan(8);
  for (const name of names) {
    try {
      readConfig({ [name]: "1" });
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      expect(error.problems.join()).not.toContain("unknown variable");
    }
  }
});

test("a delegation takes as much memory as the sizing says", async () => {
  const { redis, target } = await startOwnRedis();
  const { url } = await startBroker({ redis: target });
  const api = await as(url, "caller:alice");
  const operator = client(url);
  await operator.agent("scout");
  const used = async () => Number(/^used_memory:(\d+)/m.exec(await redis.info("memory"))?.[1]);
  const COUNT = 400;
  const text = () => Array.from({ length: 1024 }, () => Math.random().toString(36).charAt(2)).join("");
  const delegate = async (count: number) => {
    for (let n = 0; n < count; n += 20) {
      await Promise.all(Array.from({ length: 20 }, () => api.delegate("scout", { task: text() })));
    }
  };
  const work = async () => {
    let { leases } = (await operator.lease("scout", { wait_seconds: 1 })).body;
    while (leases.length > 0) {
      const next = { wait_seconds: 1 };
      ({ leases } = (await operator.reply(leases[0].lease_id, { text: text(), next })).body);
    }
  };
  const workers = () => Promise.all(Array.from({ length: 4 }, work));
  // Memory that exists once (connections, scripts, queues) does not belong to a delegation.
  await delegate(40);
  await workers();
  const empty = await used();
  await delegate(COUNT);
  const waiting = ((await used()) - empty) / COUNT;
  await workers();
  const finished = ((await used()) - empty) / COUNT;

  const [, documented] = /^\| waiting \| [\d.]+ kB \| ([\d.]+) kB/m.exec(DOC) ?? [];
  const [, kept] = /^\| finished, kept \| [\d.]+ kB \| ([\d.]+) kB/m.exec(DOC) ?? [];
  expect(waiting / 1000 / Number(documented)).toBeGreaterThan(0.8);
  expect(waiting / 1000 / Number(documented)).toBeLessThan(1.2);
  expect(finished / 1000 / Number(kept)).toBeGreaterThan(0.8);
  expect(finished / 1000 / Number(kept)).toBeLessThan(1.2);
}, 120_000);

test("a backup made while the broker runs can be restored; the restore loses what the page says", async () => {
  const dir = freshDir();
  const { url, token } = await serveIn(dir);
  const operator = client(url, token);
  await operator.agent("scout");
  const alice = await (async () => {
    const { body } = await operator.call("POST", "/v1/tokens", { principal: "caller:alice" });
    return { id: String(body.id), token: String(body.token) };
  })();
  const { id: waiting } = (await operator.delegate("scout")).body;
  const { id: done } = (await operator.delegate("scout")).body;

  const home = join(dir, ".errand");
  const file = join(freshDir(), "errand.backup");
  expect(await errand(dir, ["backup", file]).ended()).toBe(0);

  await operator.call("DELETE", `/v1/tokens/${alice.id}`);
  await operator.cancel(done);
  const { id: later } = (await operator.delegate("scout")).body;
  expect((await client(url, alice.token).get(done)).status).toBe(401);

  const fresh = freshDir();
  expect(await errand(fresh, ["restore", file]).ended()).toBe(0);
  cpSync(join(home, "operator-token"), join(fresh, ".errand/operator-token"));
  const restored = await serveIn(fresh);
  expect(restored.token).toBe(token);
  const again = client(restored.url, token);
  expect((await again.get(waiting)).body.state).toBe("submitted");
  expect((await again.get(done)).body.state).toBe("submitted");
  expect((await again.get(later)).status).toBe(404);
  expect((await client(restored.url, alice.token).call("GET", "/v1/agents")).status).toBe(200);
  const { lease_id, delegation } = (await again.lease("scout")).body.leases[0];
  expect(delegation.id).toBe(waiting);
  expect((await again.reply(lease_id)).body.outcome).toBe("matched");
}, 120_000);

describe("the systemd unit", () => {
  const unit = read("deploy/errand.service");
  const value = (name: string) => new RegExp(`^${name}=(.*)$`, "m").exec(unit)?.[1];

  test("runs the files that the package installs, waits long enough, and does not restart after a wrong setting", () => {
    const { bin } = z
      .object({ bin: z.object({ errand: z.string() }) })
      .parse(JSON.parse(read("package.json")));
    expect(value("ExecStart")).toContain(`/node_modules/errand-broker/${bin.errand} serve`);
    expect(value("RestartPreventExitStatus")).toBe(String(EXIT_CONFIG));
    expect(Number(value("TimeoutStopSec"))).toBeGreaterThan(10);
    expect(value("WorkingDirectory")).toBe(`/var/lib/${value("StateDirectory")}`);
    expect(value("Environment")).toContain(`ERRAND_DATA_DIR=/var/lib/${value("StateDirectory")}`);
  });

  const none = spawnSync("systemd-analyze", ["--version"]).status !== 0;
  test.skipIf(none)("is accepted by systemd without a complaint", () => {
    // /usr/bin/node may be elsewhere on this machine; the unit is still right.
    const { stdout, stderr } = spawnSync("systemd-analyze", ["verify", join(ROOT, "deploy/errand.service")], {
      encoding: "utf8",
    });
    const complaints = `${stdout}${stderr}`.split("\n").filter((line) => line.includes("errand.service"));
    expect(complaints.filter((line) => !line.includes("/usr/bin/node"))).toEqual([]);
  });
});

test("the gateway starts with the same young generation everywhere, and is measured with it", () => {
  const flag = /--max-semi-space-size=\d+/;
  const [documented] = flag.exec(read("docs/operations.md")) ?? [];
  expect(documented).toBeDefined();
  for (const file of ["package.json", "Dockerfile", "deploy/errand.service", "bench/remote.ts"]) {
    expect([file, flag.exec(read(file))?.[0]]).toEqual([file, documented]);
  }
});
