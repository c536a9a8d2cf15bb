/**
 * What proves more than the tests, takes longer, or needs programs of others. One table: `npm run prove` lists it, runs one
 * of it, and CONTRIBUTING.md has the same list.
 */
import { orExit, readArguments, WrongArguments } from "./arguments.mjs";
import { build } from "./build.mjs";
import { bin, run, say } from "./steps.mjs";

const isHelp = (args) => args.includes("--help") || args.includes("-h");

/** Help needs no build. */
export const buildFor = (args) => (isHelp(args) ? undefined : build());

export const node = (file, args) => run(process.execPath, [file, ...args]);
export const tsx = (file, args) => run(process.execPath, ["--import", "tsx", file, ...args]);
export const vitest = (args) => run(bin("vitest"), ["run", ...args]);

const MODEL_HELP = `npm run prove -- model [options]

Runs random walks through the lifecycle, on a broker and on its model. A failure prints the shortest walk that fails, and
the seed and path that repeat it.

  --runs N     number of walks                       (5000)
  --seed N     chooses the walks                     (random; printed)
  --path P     only the walk that failed, as printed
  --replay R   the steps of that walk, as printed
  --help       print this help`;

const FUZZ_HELP = `npm run prove -- fuzz [options]

Sends valid, almost valid and hostile requests to every API. A failure prints the shortest request that fails, and the
seed and path that send it again.

  --runs N   number of requests          (20000)
  --seed N   chooses the requests        (random; printed)
  --path P   send only the request that failed, as printed
  --help     print this help`;

const text = (value) => ({ type: "string", ...(value !== undefined && { default: value }) });

/** Reads options, and sets them in the environment, where the tests read them. */
function settings(prefix, help, options, args) {
  const { help: _help, ...values } = readArguments(help, options, { args }).values;
  for (const [name, value] of Object.entries(values)) process.env[`${prefix}_${name.toUpperCase()}`] = value;
  return values;
}

/** These break the link between a gateway and the run's one Redis, on which they put a proxy. */
const LINKED = ["redis-away", "redis-away-answers", "redis-away-batch", "feed-gap"];

/** Each: what it shows, in a line, and how it runs, with the arguments after its name. */
export const PROOFS = {
  model: {
    says: "walk at random through the lifecycle, many more than the tests walk: --runs 5000",
    async run(args) {
      const options = { runs: text("5000"), seed: text(), path: text(), replay: text() };
      settings("MODEL", MODEL_HELP, options, args);
      await vitest(["test/model/walk.slow.test.ts"]);
    },
  },
  chaos: {
    says: "break Redis, its network and every process under load, then check every observation",
    run: (args) => tsx("test/chaos/main.ts", args),
  },
  fuzz: {
    says: "send mutated requests, made from the schemas, to every API: --runs 20000 --seed 7",
    async run(args) {
      const seed = text(String(Date.now() % 2 ** 31));
      const values = settings("FUZZ", FUZZ_HELP, { runs: text("20000"), seed, path: text() }, args);
      say(`fuzz: seed ${values.seed}`);
      await vitest(["test/fuzz"]);
    },
  },
  mutants: {
    says: "put one defect at a time into the sources: a test must fail each time",
    run: (args) => node("scripts/mutants.mjs", args),
  },
  soak: {
    says: "a steady load for a long time: memory, keys and descriptors must stay flat",
    run: (args) => tsx("test/chaos/soak.ts", args),
  },
  limits: {
    says: "drive bounds to their limit and measure memory; attacks: a victim beside them; bodies: the time of one body",
    async run(args) {
      const [first, ...rest] = args;
      if (first === "attacks") await tsx("test/limits/attacks.ts", rest);
      else if (first === "bodies") await tsx("test/limits/body-cost.ts", rest);
      else await tsx("test/limits/measure.ts", args);
      if (!args.includes("--write") || isHelp(args)) return;
      await run(bin("biome"), ["format", "--write", "test/limits/measured.json"]);
      await node("scripts/generate.mjs", []);
    },
  },
  files: {
    says: "1 GiB in 11 files up and down while gateways are replaced: --files 4 --mib 40",
    run: (args) => tsx("test/files/prove.ts", args),
  },
  many: {
    says: "10 000 polls and 10 000 event streams at one gateway, and their return after a restart: three minutes",
    run: (args) => tsx("bench/main.ts", ["--only", "many", ...args]),
  },
  failover: {
    says: "kill masters of a Cluster under load, and account for every acknowledgment: --kills 10 --wait 1",
    run: (args) => tsx("test/cluster/kill-masters.ts", args),
  },
  cluster: {
    says: "the tests of doors, flows, lifecycle and faults on a Redis Cluster, or those named: test/flows",
    async run(args) {
      process.env.ERRAND_TEST_CLUSTER = "1";
      const folders = ["test/cluster", "test/doors", "test/flows", "test/lifecycle", "test/faults"];
      const excludes = LINKED.flatMap((name) => ["--exclude", `test/faults/${name}.{test,slow.test}.ts`]);
      // One worker, because a Cluster has one database.
      await vitest(["--maxWorkers", "1", ...excludes, ...(args.length > 0 ? args : folders)]);
    },
  },
  upgrade: {
    says: "replace gateways of another build under load: --from COMMIT",
    run: (args) => node("scripts/rolling-upgrade.mjs", args),
  },
  nodes: {
    says: "the tests on Node 20, 22 and 24, installed in ~/.cache/errand: --node 22 test/client",
    run: (args) => node("scripts/nodes.mjs", args),
  },
  proxies: {
    says: "nginx, HAProxy and Caddy with the files of deploy/, where installed: --long",
    run: (args) => node("scripts/proxies.mjs", args),
  },
  agents: {
    says: "the coding agents of --preset against a scripted model: --only gemini; --scene for two of them",
    run: (args) => tsx("test/agents-real/main.ts", args),
  },
  "acp-kills": {
    says: "kill workers of an ACP agent while people approve its calls: no call is handed over twice",
    run: (args) => tsx("test/acp-kills/main.ts", args),
  },
  "python-sdks": {
    says: "clients of the official Python A2A SDKs against a broker, where Python is installed",
    run: (args) => node("scripts/python-sdks.mjs", args),
  },
  golden: {
    says: "update the outputs that test/cli/golden compares; read the difference before you commit it",
    run: (args) => vitest(["test/cli/golden", "--update", ...args]),
  },
};

const WIDTH = Math.max(...Object.keys(PROOFS).map((name) => name.length));
export const PROVE_HELP = `npm run prove -- NAME [arguments]     most take --help

${Object.entries(PROOFS)
  .map(([name, { says }]) => `${name.padEnd(WIDTH)}  ${says}\n`)
  .join("")}`;

const nearest = (name, known) => known.toSorted((a, b) => distance(name, a) - distance(name, b))[0];

/** How many letters are to be added, removed or replaced. */
function distance(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j += 1)
      next.push(Math.min(row[j + 1] + 1, next[j] + 1, row[j] + (letter === b[j] ? 0 : 1)));
    row = next;
  }
  return row[b.length];
}

/** `npm run prove -- NAME [arguments]`. Without a name it prints the list. */
export async function prove([name, ...args]) {
  const { proof } = orExit(PROVE_HELP, () => {
    if (name === undefined || name === "--help" || name === "-h") return { values: { help: true } };
    if (Object.hasOwn(PROOFS, name)) return { values: {}, proof: PROOFS[name] };
    const best = nearest(name, Object.keys(PROOFS));
    throw new WrongArguments(
      `There is no proof '${name}'. Do you mean '${best}'? 'npm run prove' lists all.`,
    );
  });
  await buildFor(args);
  await proof.run(args);
}
