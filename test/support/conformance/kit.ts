/**
 * Runs the conformance kit for one revision, with its extensions, in its own process, and collects its checks.
 */
import { execFile } from "node:child_process";
import * as fs from "node:fs";
import { createServer, request } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { onTestFinished } from "vitest";
import * as z from "zod";

const MODULES = fileURLToPath(new URL("../../../node_modules", import.meta.url));
const KIT = join(MODULES, "@modelcontextprotocol/conformance");
const LONGEST_MS = 540_000;

/** The kit waits for half a second for an answer, which is too short for a busy machine; this makes it wait longer. */
const PATIENT = `data:text/javascript,${encodeURIComponent(
  "const wait = setTimeout; globalThis.setTimeout = (run, ms, ...more) => wait(run, ms >= 300 ? 4 * ms : ms, ...more);",
)}`;

/** A proxy that adds the token, which the kit cannot send. */
export async function startTokenProxy(target: string, token: string): Promise<string> {
  const { hostname, port } = new URL(target);
  // Without a limit for idle connections: the kit may use one in the moment in which it ends.
  const server = createServer({ keepAliveTimeout: 0 }, (incoming, outgoing) => {
    const { method, url: path, headers } = incoming;
    const onward = request(
      { hostname, port, method, path, headers: { ...headers, authorization: `Bearer ${token}` } },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
        answer.pipe(outgoing);
      },
    );
    onward.on("error", () => outgoing.destroy());
    outgoing.on("close", () => onward.destroy());
    incoming.pipe(onward);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the proxy has no port");
  return `http://127.0.0.1:${address.port}`;
}

/** The kit's program; on a Node without one of its imports, a copy without that import. */
function programIn(folder: string): string {
  const program = join(KIT, "dist/index.js");
  if ("globSync" in fs) return program;
  const lacking = /globSync as (\w+),/;
  const source = fs.readFileSync(program, "utf8");
  const [, name] = lacking.exec(source) ?? [];
  if (name === undefined) throw new Error("the kit imports something else than was expected of it");
  fs.mkdirSync(join(folder, "dist"));
  fs.cpSync(join(KIT, "requirements"), join(folder, "requirements"), { recursive: true });
  fs.cpSync(join(KIT, "package.json"), join(folder, "package.json"));
  fs.symlinkSync(MODULES, join(folder, "node_modules"));
  const copy = join(folder, "dist/index.js");
  // Only a command that is not used here needs it.
  fs.writeFileSync(copy, `${source.replace(lacking, "")}\nvar ${name} = () => [];\n`);
  return copy;
}

const checksSchema = z.array(
  z.looseObject({ id: z.string(), status: z.string(), errorMessage: z.string().optional() }),
);

export interface Checked {
  readonly scenario: string;
  readonly id: string;
  readonly status: string;
  readonly errorMessage?: string | undefined;
}

/** The kit's checks of `url`, the address of /mcp. */
export async function runKit(url: string, revision: string): Promise<Checked[]> {
  const folder = fs.mkdtempSync(join(tmpdir(), "errand-conformance-"));
  onTestFinished(() => fs.rmSync(folder, { recursive: true, force: true }));
  const results = join(folder, "results");
  const args = [
    "--import",
    PATIENT,
    programIn(folder),
    "server",
    "--url",
    url,
    "--requirements",
    revision,
    "-o",
    results,
  ];
  // The exit code is ignored: the test decides which checks may fail.
  const said = await promisify(execFile)(process.execPath, args, {
    cwd: folder,
    timeout: LONGEST_MS,
    maxBuffer: 64 * 1024 * 1024,
  }).catch((error: unknown) => z.looseObject({ stdout: z.string(), stderr: z.string() }).parse(error));
  const files = fs.existsSync(results)
    ? fs.readdirSync(results, { recursive: true, encoding: "utf8" }).filter((f) => f.endsWith("checks.json"))
    : [];
  if (files.length === 0) throw new Error(`the kit checked nothing: ${said.stdout}${said.stderr}`);
  return files.flatMap((file) => {
    const [, scenario = ""] = /^server-(.+)-\d{4}-\d\d-\d\dT/.exec(dirname(file)) ?? [];
    const checks = checksSchema.parse(JSON.parse(fs.readFileSync(join(results, file), "utf8")));
    return checks.map(({ id, status, errorMessage }) => ({ scenario, id, status, errorMessage }));
  });
}
