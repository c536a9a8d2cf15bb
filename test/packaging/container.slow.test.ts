/** The steps of the image and of the compose file, without Docker. Users, capabilities and mounts are only read. */
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { launch, terminate } from "../../src/redis/embedded/server.ts";
import { freshDir } from "../support/program.ts";
import { testRedisBinary } from "../support/redis-server.ts";
import { until } from "../support/until.ts";
import { readCompose, redisConfigOf } from "./compose.ts";
import { plainEnv } from "./consumer.ts";
import { all, copies, environment, execForm, parseDockerfile, type Stage } from "./dockerfile.ts";
import { ROOT } from "./registry.ts";

const stages = parseDockerfile(readFileSync(join(ROOT, "Dockerfile"), "utf8"));
const [build, image] = stages;
if (build === undefined || image === undefined) throw new Error("two stages are expected");

/** What .dockerignore, a list of exceptions, lets through. */
function context(): string[] {
  const lines = readFileSync(join(ROOT, ".dockerignore"), "utf8").split("\n");
  const [everything, ...let_in] = lines.filter((line) => line !== "" && !line.startsWith("#"));
  expect(everything).toBe("*");
  return let_in.map((line) => {
    expect(line).toMatch(/^!/);
    return line.slice(1);
  });
}

test("the image has a fixed base, no root, a health check, and receives signals itself", () => {
  for (const { image: base } of stages) expect(base).toMatch(/^node:\d+-[a-z]+-slim$/);
  expect(new Set(stages.map(({ image: base }) => base)).size).toBe(1);
  expect(all(image, "USER")).toEqual(["node"]);
  const order = image.steps.map(({ name }) => name);
  expect(order.lastIndexOf("RUN")).toBeLessThan(order.indexOf("USER"));
  expect(all(image, "HEALTHCHECK")).toHaveLength(1);
  expect(execForm(all(image, "CMD")[0] ?? "")[0]).toBe("node");
  expect(all(image, "VOLUME")).toEqual([environment(image).ERRAND_DATA_DIR]);
  expect(all(image, "EXPOSE")).toEqual([environment(image).ERRAND_PORT]);
  // Only the build output is copied, not the sources.
  for (const { from } of copies(image)) expect(from).toBe(build.alias);
});

test("compose: data survives, the broker waits for Redis, nothing listens beyond this machine", () => {
  const { services, volumes } = readCompose();
  const { redis, errand } = services;
  expect(redis.image).toMatch(/^redis:\d/);
  for (const port of errand.ports) expect(port).toMatch(/^127\.0\.0\.1:/);
  expect(redis.volumes).toEqual(["redis:/data"]);
  expect(errand.volumes).toEqual([`errand:${environment(image).ERRAND_DATA_DIR}`]);
  expect(Object.keys(volumes)).toEqual(["redis", "errand"]);
  // A clean stop takes up to ten seconds, as long as Docker waits by default.
  expect(Number.parseInt(errand.stop_grace_period, 10)).toBeGreaterThan(10);
  expect(errand.image).toBe(`errand:${JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")).version}`);
});

test("the image's steps produce a gateway that is healthy with compose's Redis and ends at SIGTERM", async () => {
  const { services } = readCompose();
  const app = buildStage(build);
  const root = freshDir();
  for (const { sources, target } of copies(image)) {
    for (const source of sources) {
      const from = join(app, source.slice("/app/".length));
      copyTree(from, join(root, target === "./" ? (source.split("/").at(-1) ?? "") : target));
    }
  }
  // The program has its dependencies in it.
  expect(existsSync(join(root, "node_modules"))).toBe(false);

  const { socket, stop } = await composeRedis(redisConfigOf(services.redis.command));
  const port = String(await freePort());
  const env = {
    ...plainEnv(),
    ...environment(image),
    ...services.errand.environment,
    ERRAND_DATA_DIR: freshDir(),
    ERRAND_PORT: port,
    ERRAND_REDIS_URL: `unix:${socket}`,
  };
  const healthy = () => {
    const [command = "", ...args] = execForm(all(image, "HEALTHCHECK")[0] ?? "");
    return spawnSync(command, args, { env, cwd: root }).status;
  };
  expect(healthy()).toBe(1);
  const [, ...args] = execForm(all(image, "CMD")[0] ?? "");
  const gateway = spawn(process.execPath, args, { cwd: root, env, stdio: ["ignore", "ignore", "pipe"] });
  const closed = once(gateway, "close");
  onTestFinished(async () => {
    gateway.kill("SIGKILL");
    await closed;
  });
  let said = "";
  gateway.stderr.on("data", (chunk) => {
    said += chunk;
  });
  await until(() => said.includes("errand is ready at") || gateway.exitCode !== null);
  // Neither refused, nor a cause of warnings.
  expect(said).not.toContain('"Redis: ');
  expect(healthy()).toBe(0);
  await stop();
  await until(() => healthy() === 1);
  gateway.kill("SIGTERM");
  expect(await closed).toEqual([0, null]);
}, 900_000);

/** Runs the build stage; packages that `npm ci` would install are copied from here, as the lock file is the same. */
function buildStage(stage: Stage): string {
  const app = freshDir();
  const inside = context();
  for (const { name, text } of stage.steps) {
    if (name === "COPY") {
      const sources = text.split(" ").slice(0, -1);
      for (const source of sources[0] === "." ? inside : sources) {
        expect(inside).toContain(source);
        cpSync(join(ROOT, source), join(app, source), { recursive: true });
      }
    } else if (name === "RUN" && text.startsWith("npm ci")) {
      copyTree(join(ROOT, "node_modules"), join(app, "node_modules"));
    } else if (name === "RUN") {
      execFileSync("sh", ["-c", text], { cwd: app, env: plainEnv(), stdio: "pipe" });
    }
  }
  return app;
}

/** Needs half the CPU time of Node's own copy. The target must not exist. */
function copyTree(from: string, to: string): void {
  execFileSync("cp", ["-a", from, to]);
}

async function composeRedis(config: Record<string, string>) {
  const directory = freshDir();
  const socket = join(directory, "redis.sock");
  const lines = Object.entries({ ...config, dir: directory, port: "0", unixsocket: socket });
  const server = await launch(
    await testRedisBinary(),
    lines.map(([name, value]) => `${name} "${value}"\n`).join(""),
    join(directory, "lock"),
  );
  onTestFinished(() => terminate(server));
  const redis = new Redis(socket);
  redis.on("error", () => {});
  onTestFinished(() => redis.disconnect());
  await until(() => redis.ping());
  const has = async (name: string) => {
    const pair = await redis.config("GET", name);
    return Array.isArray(pair) ? pair[1] : undefined;
  };
  expect(await has("appendonly")).toBe("yes");
  expect(await has("appendfsync")).toBe("always");
  expect(await has("maxmemory-policy")).toBe("noeviction");
  expect(await has("save")).toBe("");
  expect(Number(await has("maxmemory"))).toBeGreaterThan(0);
  return { socket, stop: () => terminate(server) };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  await new Promise((done) => server.close(done));
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}
