import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { publint } from "publint";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { freshDir } from "../support/program.ts";
import { until } from "../support/until.ts";
import { bytesIn, installElsewhere, pack, plainEnv } from "./consumer.ts";
import { ROOT } from "./registry.ts";

const PATIENCE = 900_000;

const place = mkdtempSync(join(tmpdir(), "errand-packed-"));
/** The tarball, and the paths in it. */
let packed: Awaited<ReturnType<typeof pack>>;

beforeAll(async () => {
  packed = await pack(place);
}, PATIENCE);
afterAll(() => rmSync(place, { recursive: true, force: true }));

/** An ESM program of a user, which delegates and works with the library. */
const SCRIPT = `
import { Admin, Agent, Delegator } from "errand-broker";
import { delegationSchema } from "errand-broker/schema";
const connection = { url: process.argv[2], token: process.argv[3] };
await new Admin(connection).putAgent("scout");
const agent = new Agent({ ...connection, agent: "scout" }, async (work) => work.text.toUpperCase());
const working = agent.run();
const delegator = new Delegator(connection);
const { id } = await delegator.delegate({ target: "scout", task: "hello" });
const ended = delegationSchema.parse(await delegator.wait(id));
console.log(ended.state, ended.reply.parts[0].text);
await agent.stop();
await working;
`;

const TYPED = `
import { Agent, type Delegated, Delegator, type Work } from "errand-broker";
import { delegationSchema } from "errand-broker/schema";
const connection = { url: "http://127.0.0.1:4180", token: "t" };
const delegator = new Delegator(connection);
const made: Delegated = await delegator.delegate({ target: "scout", task: "hello" });
const state: "completed" | string = delegationSchema.parse(made).state;
new Agent({ ...connection, agent: "scout" }, async (work: Work) => work.text + state);
// @ts-expect-error: the types exist; it is not any.
await delegator.delegate({ target: 3 });
`;

test(
  "the packed tarball, installed elsewhere, serves and delegates",
  async () => {
    const folder = await installElsewhere(packed.tarball);
    expect(readdirSync(join(folder, "node_modules")).filter((name) => !name.startsWith("."))).toEqual([
      "errand-broker",
    ]);
    expect(bytesIn(join(folder, "node_modules"))).toBeLessThanOrEqual(8 * 2 ** 20);
    const npx = (...args: string[]) =>
      execFileSync("npx", ["--no-install", "errand-broker", ...args], {
        cwd: folder,
        env: plainEnv(),
        encoding: "utf8",
      });
    const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    expect(npx("--version").trim()).toBe(version);

    // As npx would start it, but with its own pid: npx keeps a shell in between.
    const broker = spawn(join(folder, "node_modules/.bin/errand"), ["serve"], {
      cwd: folder,
      env: { ...plainEnv(), ERRAND_PORT: "0", ERRAND_DATA_DIR: join(folder, "data") },
      stdio: ["ignore", "ignore", "pipe"],
    });
    const closed = once(broker, "close");
    onTestFinished(async () => {
      broker.kill("SIGKILL");
      await closed;
    });
    let said = "";
    broker.stderr.on("data", (chunk) => {
      said += chunk;
    });
    await until(() => said.includes("errand is ready at") || broker.exitCode !== null);
    const url = /errand is ready at (\S+)/.exec(said)?.[1] ?? said;

    const page = await fetch(url);
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining("<title>Errand</title>")]);
    writeFileSync(join(folder, "app.mjs"), SCRIPT);
    const token = readFileSync(join(folder, "data/operator-token"), "utf8").trim();
    const output = execFileSync(process.execPath, ["app.mjs", url, token], { cwd: folder, encoding: "utf8" });
    expect(output).toBe("completed HELLO\n");

    broker.kill("SIGTERM");
    expect(await closed).toEqual([0, null]);
    expect(existsSync(join(folder, "data/gateway.json"))).toBe(false);
    expect(existsSync(join(folder, ".errand"))).toBe(false);

    writeFileSync(join(folder, "app.mts"), TYPED);
    // CommonJS, as docs/library.md has it.
    const required = 'console.log(typeof require("errand-broker").Delegator)';
    expect(String(execFileSync(process.execPath, ["-e", required], { cwd: folder }))).toBe("function\n");
    writeFileSync(
      join(folder, "app.cts"),
      'import { Delegator } from "errand-broker";\nexport const made = new Delegator();\n',
    );
    const common = {
      noEmit: true,
      strict: true,
      exactOptionalPropertyTypes: true,
      skipLibCheck: false,
      types: [],
    };
    const kinds = {
      "node.json": { module: "nodenext", moduleResolution: "nodenext" },
      "bundler.json": { module: "esnext", moduleResolution: "bundler" },
    };
    for (const [file, kind] of Object.entries(kinds)) {
      const compilerOptions = {
        ...common,
        ...kind,
        target: "es2023",
        lib: ["es2023", "dom", "dom.iterable"],
      };
      writeFileSync(
        join(folder, file),
        JSON.stringify({ compilerOptions, files: [...(file === "node.json" ? ["app.cts"] : []), "app.mts"] }),
      );
      const tsc = join(ROOT, "node_modules/.bin/tsc");
      const checked = await new Promise<string>((done) => {
        const child = spawn(tsc, ["-p", file, "--checkers", "1"], {
          cwd: folder,
          stdio: ["ignore", "pipe", "inherit"],
        });
        let text = "";
        child.stdout.on("data", (chunk) => {
          text += chunk;
        });
        child.once("close", (code) => done(`${file}: ${code}${text}`));
      });
      expect(checked).toBe(`${file}: 0`);
    }
  },
  PATIENCE,
);

test(
  "npx starts a broker from the tarball, in an empty folder",
  async () => {
    const folder = freshDir();
    const child = spawn("npx", ["--yes", relative(folder, packed.tarball), "serve"], {
      cwd: folder,
      env: { ...plainEnv(), ERRAND_PORT: "0", npm_config_cache: freshDir() },
      stdio: ["ignore", "ignore", "pipe"],
      detached: true,
    });
    const closed = once(child, "close");
    onTestFinished(async () => {
      if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, "SIGKILL");
      await closed;
    });
    let said = "";
    child.stderr.on("data", (chunk) => {
      said += chunk;
    });
    await until(() => said.includes("sessions link") || child.exitCode !== null, { timeoutMs: 300_000 });
    expect(said).toContain("errand is ready at");
    expect(said).toMatch(/node \S+\/errand-broker\/dist\/errand\.js sessions link/);
    if (child.pid !== undefined) process.kill(-child.pid, "SIGTERM");
    await closed;
  },
  PATIENCE,
);

test(
  "the tarball contains what users need and nothing else",
  async () => {
    const { tarball, paths } = packed;
    const shapes = [
      /^dist\/(?:errand|library\/(?:index|schema|shared-[A-Z0-9]{8}))\.js$/,
      /^dist\/(?:[a-z0-9-]+\/)+[a-z0-9-]+\.(?:lua|css|json)$/,
      /^dist\/types\/(?:[a-zA-Z0-9-]+\/)*[a-zA-Z0-9-]+\.d\.ts$/,
      /^dist\/(?:errand-[A-Z0-9]{8}\.js|licenses\.txt)$/,
      /^dist\/console\/(?:(?:index|answer)\.html|[a-z-]+-[A-Z0-9]{8}\.svg)(?:\.br|\.gz)?$/,
      /^dist\/console\/(?:sw|[a-z-]+-[A-Z0-9]{8})\.(?:css|js)\.(?:br|gz)$/,
      /^docs\/(?:README\.md|[a-z0-9-]+\.(?:md|json))$/,
      /^deploy\/(?:[a-z.-]+|Caddyfile)$/,
      /^examples\/(?:[a-zA-Z0-9-]+\.(?:md|ts)|python\/[a-z]+\.py)$/,
      /^examples\/copilotkit\/(?:package\.json|README\.md|[a-z]+\.(?:html|mjs))$/,
      /^(?:package\.json|README\.md|CHANGELOG\.md|CONTRIBUTING\.md|SECURITY\.md|ARCHITECTURE\.md|LICENSE)$/,
    ];
    expect(paths.filter((path) => !shapes.some((shape) => shape.test(path)))).toEqual([]);
    expect(paths.filter((path) => /test|\.env|token$|npmrc|\.tgz$/.test(path))).toEqual([]);
    for (const needed of [
      "dist/licenses.txt",
      "README.md",
      "LICENSE",
      "CHANGELOG.md",
      "dist/errand.js",
      "dist/console/index.html",
      "dist/types/index.d.ts",
      "docs/operations.md",
    ])
      expect(paths).toContain(needed);

    const unpacked = freshDir();
    execFileSync("tar", ["-xzf", tarball, "-C", unpacked]);
    const text = paths.map((path) => readFileSync(join(unpacked, "package", path), "utf8")).join("\n");
    // No path of the packing machine, no credential, no reference to a missing file.
    expect(text).not.toContain(ROOT.slice(0, -1));
    expect(text).not.toMatch(
      /errand_[0-9a-z]{40,}|whsec_[A-Za-z0-9+/]{24,}|-----BEGIN [A-Z ]*PRIVATE KEY-----\s+[A-Za-z0-9+/]{20}|_authToken=/,
    );
    expect(text).not.toMatch(/^\/\/# sourceMappingURL/m);
    // The bundle has copies of the dependencies, which their licences allow if the text is there.
    const licenses = readFileSync(join(unpacked, "package/dist/licenses.txt"), "utf8");
    for (const name of ["bullmq", "ioredis", "preact", "zod"]) {
      expect(licenses).toMatch(new RegExp(`^${name} [0-9.]+ \\(MIT\\)\n\n.*MIT`, "ms"));
    }
    for (const license of licenses.split("\n\n---\n\n")) expect(license.length, license).toBeGreaterThan(100);
    const manifest = JSON.parse(readFileSync(join(unpacked, "package/package.json"), "utf8"));
    expect(manifest.engines.node).toBe(">=20.19");
    for (const path of Object.values<string>(manifest.bin)) expect(paths).toContain(path);
    expect(Object.keys(manifest).filter((name) => /dependencies|private/i.test(name))).toEqual([]);
    expect(Object.keys(manifest.scripts).filter((name) => /install|^prepare$/.test(name))).toEqual([]);
    // The project has its own again.
    expect(JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")).dependencies).toBeDefined();

    const pages = paths.filter((path) => path.endsWith(".md"));
    const links = pages.flatMap((page) => {
      const source = readFileSync(join(unpacked, "package", page), "utf8").replaceAll(/^```.*?^```/gms, "");
      const targets = [...source.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = ""]) => target);
      const relative = targets.filter((target) => !/^(?:[a-z]+:|#)/.test(target));
      return relative.map((target) => ({
        page,
        target,
        file: join(dirname(page), target.replace(/#.*/, "")),
      }));
    });
    expect(links.length).toBeGreaterThan(20);
    // The pictures, which only the project has, would be a thirtieth of the package.
    expect(links.filter(({ file }) => !paths.includes(file) && !file.endsWith(".png"))).toEqual([]);
  },
  PATIENCE,
);

test(
  "publint reports nothing to fix",
  async () => {
    const tarball = new Uint8Array(readFileSync(packed.tarball)).buffer;
    const { messages } = await publint({ pack: { tarball }, strict: true });
    expect(messages).toEqual([]);
  },
  PATIENCE,
);
