/** Finds the local broker, and sends the operator token to no other server. */
import { chown, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { hostname, networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { getuid } from "node:process";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { discover } from "../../src/cli/discover.ts";
import { Delegator } from "../../src/index.ts";
import { AGENT, stubBroker } from "../client/stub-broker.ts";
import { run } from "./fake-host.ts";

// Every name leads to this machine at first; by the time of a request, its owner could have changed that.
vi.mock("node:dns/promises", () => ({ lookup: async () => [{ address: "127.0.0.1", family: 4 }] }));

/** Of this machine: also looked up. */
const NAME = hostname() === "localhost" ? [] : [`${hostname()}:4180`];
const LOCAL = "http://127.0.0.1:4180";

async function folder(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), "errand-discover-"));
  onTestFinished(() => rm(made, { recursive: true, force: true }));
  return made;
}

async function brokerIn(dataDir: string, url = LOCAL): Promise<void> {
  await mkdir(dataDir, { recursive: true });
  await writeFile(join(dataDir, "gateway.json"), JSON.stringify({ url, pid: 1 }));
  await writeFile(join(dataDir, "operator-token"), "errand_local\n");
}

describe("with a local broker", () => {
  test("its files contain the URL and the operator token", async () => {
    const dataDir = join(await folder(), "data");
    await brokerIn(dataDir);
    expect(await discover({ dataDir }, {})).toEqual({ url: LOCAL, token: "errand_local" });
  });

  test("the default directory is searched for in parents, another name is not", async () => {
    const root = await folder();
    await brokerIn(join(root, ".errand"));
    await brokerIn(join(root, "data"));
    const deep = join(root, "a", "b");
    expect(await discover({ dataDir: join(deep, ".errand") }, {})).toMatchObject({ url: LOCAL });
    await expect(discover({ dataDir: join(deep, "data") }, {})).rejects.toMatchObject({ code: "no_broker" });
  });

  test("the nearest directory wins, running or not", async () => {
    const root = await folder();
    await brokerIn(join(root, ".errand"));
    const near = join(root, "near", ".errand");
    await mkdir(near, { recursive: true });
    await expect(discover({ dataDir: near }, {})).rejects.toMatchObject({
      category: "TRANSPORT",
      message: expect.stringContaining("no broker is running on"),
      recovery: expect.stringContaining("errand serve"),
    });
  });

  test("flags win over the environment, which wins over the files", async () => {
    const dataDir = join(await folder(), "data");
    await brokerIn(dataDir);
    const env = { url: "http://env:1", token: "env", dataDir };
    expect(await discover(env, {})).toEqual({ url: "http://env:1", token: "env" });
    expect(await discover(env, { url: "http://flag:1", token: "flag" })).toEqual({
      url: "http://flag:1",
      token: "flag",
    });
    expect(await discover({ token: "env", dataDir }, {})).toEqual({ url: LOCAL, token: "env" });
    expect(await discover({ url: `${LOCAL}/`, dataDir }, {})).toEqual({
      url: `${LOCAL}/`,
      token: "errand_local",
    });
  });

  test("the operator token goes to no other URL, not even a similar one", async () => {
    const dataDir = join(await folder(), "data");
    await brokerIn(dataDir);
    for (const url of [
      "http://127.0.0.1:4181",
      "http://localhost:4180",
      "https://127.0.0.1:4180",
      "http://evil/",
    ]) {
      await expect(discover({ url, dataDir }, {})).rejects.toMatchObject({
        code: "no_token",
        category: "AUTH",
      });
    }
  });
});

test("a data directory that names another machine gets neither the work nor a token", async () => {
  const dataDir = join(await folder(), ".errand");
  const names = ["192.0.2.1:4180", "[2001:db8::1]", "rebinds.example:4180", ...NAME];
  for (const url of names.map((name) => `http://${name}`)) {
    await brokerIn(dataDir, url);
    for (const env of [{ dataDir }, { dataDir, token: "mine" }])
      await expect(discover(env, {})).rejects.toMatchObject({
        code: "foreign_broker",
        message: expect.stringContaining(`names ${new URL(url).origin}, which is no address of this machine`),
      });
    expect(await discover({ dataDir, token: "mine", url }, {})).toEqual({ url, token: "mine" });
  }
  const own = Object.values(networkInterfaces()).flatMap((all = []) => all.filter(({ scopeid }) => !scopeid));
  const addresses = own.map(({ address }) => (address.includes(":") ? `[${address}]` : address));
  for (const name of [...addresses, "127.0.0.2", "localhost"]) {
    const url = `http://${name}:4180`;
    await brokerIn(dataDir, url);
    expect(await discover({ dataDir }, {})).toEqual({ url, token: "errand_local" });
  }
});

test.skipIf(getuid?.() !== 0)("a file of another user in an own folder is not read", async () => {
  const dataDir = join(await folder(), ".errand");
  for (const file of ["gateway.json", "operator-token"]) {
    await brokerIn(dataDir);
    await chown(join(dataDir, file), 12_345, 12_345);
    await expect(discover({ dataDir }, {})).rejects.toMatchObject({
      code: "foreign_data_dir",
      message: expect.stringContaining(file),
    });
    await rm(join(dataDir, file));
  }
});

test.each([
  ["in UTF-16", Buffer.from("\uFEFFerrand_local_token\r\n", "utf16le"), "is UTF-16 text. Save it as UTF-8"],
  [
    "in UTF-16 without a mark",
    Buffer.from("errand_local_token", "utf16le"),
    "is UTF-16 text. Save it as UTF-8",
  ],
  ["in Latin-1", Buffer.from("errand_tök", "latin1"), "is not UTF-8 text. "],
  ["with two lines", Buffer.from("errand_a\nerrand_b\n"), "has more than one line. Pass only the token."],
])("a local operator token %s is refused with its file and what is wrong", async (_what, bytes, said) => {
  const dataDir = join(await folder(), "data");
  await brokerIn(dataDir);
  await writeFile(join(dataDir, "operator-token"), bytes);
  const { code, stderr } = await run(["list"], { env: { dataDir } });
  expect([code, stderr]).toEqual([77, expect.stringContaining(`${join(dataDir, "operator-token")} ${said}`)]);
  expect(await discover({ dataDir, token: "mine" }, {})).toEqual({ url: LOCAL, token: "mine" });
});

describe("the output", () => {
  test("no token: says who creates one", async () => {
    const dataDir = join(await folder(), "data");
    await brokerIn(dataDir);
    for (const env of [{ dataDir: "/nonexistent/data" }, { dataDir }]) {
      const { code, stderr } = await run(["list", "--url", "http://h:1"], { env });
      expect([code, stderr]).toEqual([
        77,
        expect.stringMatching(
          /^errand: no token for http:\/\/h:1\. .*operator creates a token with 'errand invite <name>'\.\n$/,
        ),
      ]);
    }
    const stub = await stubBroker((_request, answer) => answer.json({ status: "ok" }));
    const doctor = await run(["doctor", "--url", stub.url], { env: { dataDir: "/nonexistent/data" } });
    expect(doctor.stdout).toContain("'errand invite <name>'");
  });

  test.each([
    [
      "http://h:1/?token=hush",
      "the URL 'http://h:1' is followed by a query ('?…'), which the URL of a broker has not",
    ],
    [
      "http://h:1/broker#hush",
      "the URL 'http://h:1/broker' is followed by a fragment ('#…'), which the URL of a broker has not",
    ],
    ["http://h:1/?", "the URL 'http://h:1' is followed by a query ('?…'), which the URL of a broker has not"],
    [
      "http://ann:hush@h:1",
      "the URL 'http://h:1' has a user or password; a broker has none, so pass a token by ERRAND_TOKEN",
    ],
    ["ftp://ann:hush@h/a?hush", "'ftp://***@h/a' is not an http(s) URL"],
  ])("the URL %s is refused in every command, without what may be secret", async (url, said) => {
    for (const argv of [["list"], ["work", "--agent", "a", "--", "cat"], ["mcp"]]) {
      const { code, stderr } = await run(argv, { env: { url, token: "t", dataDir: "/nonexistent/data" } });
      expect([code, stderr]).toEqual([
        78,
        `errand: ${said}. Correct --url or ERRAND_URL, for example http://127.0.0.1:4180.\n`,
      ]);
    }
    expect(() => new Delegator({ url })).toThrow(said);
  });

  test("nothing found: says what to do, exits 75", async () => {
    const { code, stderr } = await run(["watch"], { env: { dataDir: join(await folder(), "data") } });
    expect(code).toBe(75);
    expect(stderr).toMatch(/^errand: no broker found: .*errand serve.*\n$/);
  });

  test("a broker with a data directory of its own is found by ERRAND_DATA_DIR", async () => {
    for (const dataDir of [join(await folder(), ".errand"), join(await folder(), "data")]) {
      const { stderr } = await run(["list"], { env: { dataDir } });
      expect(stderr).toContain("ERRAND_DATA_DIR");
    }
  });

  test.each([
    [{ dataDir: "/nonexistent/data" }, ["--url", "banana"]],
    [{ dataDir: "/nonexistent/data", url: "banana" }, []],
    [{ dataDir: "/nonexistent/data", token: "t" }, ["--url", "banana"]],
  ])("%j %j: an invalid URL is reported before a missing token", async (env, argv) => {
    const { code, stderr } = await run([...argv, "list"], { env });
    expect([code, stderr]).toEqual([
      78,
      "errand: 'banana' is not an http(s) URL. Correct --url or ERRAND_URL, for example http://127.0.0.1:4180.\n",
    ]);
  });

  test("found, but nothing listens: exits 75 at once", async () => {
    const dataDir = join(await folder(), "data");
    const gone = await stubBroker(() => undefined);
    await gone.close();
    await brokerIn(dataDir, gone.url);
    const { code, stderr } = await run(["agent", "list"], { env: { dataDir } });
    expect(code).toBe(75);
    expect(stderr).toContain(`nothing answers at ${gone.url} (ECONNREFUSED)`);
    expect(stderr).toContain("errand serve");
  });

  test("found and running: it works", async () => {
    const dataDir = join(await folder(), "data");
    const stub = await stubBroker((_request, answer) => answer.json({ agents: [AGENT], next_cursor: null }));
    await brokerIn(dataDir, stub.url);
    const { code, stdout } = await run(["agent", "list"], { env: { dataDir } });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^NAME +PRESENCE.*\nscout +offline +never +1 /);
    expect(stub.seen[0]?.headers.authorization).toBe("Bearer errand_local");
  });
});
