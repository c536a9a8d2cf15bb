/** `errand invite` against a real gateway: what is printed works. */
import { networkInterfaces } from "node:os";
import { expect, test } from "vitest";
import { z } from "zod";
import { lines, setup } from "./cli.ts";

test("prints the URL, the token and a first command for each role; --json has them, too", async () => {
  const { run, url } = await setup();
  const invited = await run(["invite", "alice"]);
  expect([invited.code]).toEqual([0]);
  const [first, second, third] = invited.stdout.trim().split("\n");
  expect(first).toBe(`export ERRAND_URL='${url}'`);
  expect(third).toBe("errand delegate AGENT TASK --wait");
  const token = /^export ERRAND_TOKEN='(errand_\w+)'$/.exec(second ?? "")?.[1] ?? "";
  expect(invited.stderr).toMatch(/created \w+ for caller:alice; the token is shown only once\.\n/);
  expect(invited.stderr).toContain(`they sign in with the same token at ${url}/\n`);
  expect(invited.stderr).toContain(`${url} works only on this machine`);
  expect(invited.stderr).toContain("npm install -g FILE");
  // The token is the caller's: it may delegate, not administer.
  expect((await run(["list"], { token })).code).toBe(0);
  expect((await run(["token", "list"], { token })).code).toBe(77);

  const schema = z.looseObject({
    principal: z.string(),
    url: z.string(),
    token: z.string(),
    expires_at: z.string(),
    lines: z.array(z.string()),
  });
  for (const [role, command] of [
    ["agent", "errand work --agent bob -- COMMAND"],
    ["approver", "errand inbox"],
  ]) {
    const made = await run(["invite", "bob", `--${role}`, "--expires", "90d", "--json"]);
    expect([made.code, made.stderr]).toEqual([0, ""]);
    const [one] = lines(schema, made.stdout);
    expect(one).toMatchObject({ principal: `${role}:bob`, url });
    expect(one?.lines).toEqual([
      `export ERRAND_URL='${url}'`,
      `export ERRAND_TOKEN='${one?.token}'`,
      command,
    ]);
  }
  const both = await run(["invite", "bob", "--agent", "--caller"]);
  expect([both.code, both.stdout]).toEqual([64, ""]);
  expect(both.stderr).toContain("Choose one of --agent, --caller and --approver.");
});

test("a second invitation says that there is a token already, unless it is told to make another", async () => {
  const { run } = await setup();
  expect((await run(["invite", "alice"])).code).toBe(0);
  const [{ id }] = lines(
    z.looseObject({ id: z.string() }),
    (await run(["token", "list", "--json"])).stdout,
  ) as [{ id: string }];
  const again = await run(["invite", "alice"]);
  expect([again.code, again.stdout]).toEqual([64, ""]);
  expect(again.stderr).toContain(`caller:alice has a token already, ${id}, created `);
  expect(again.stderr).toContain(`'errand token revoke ${id}'`);
  // Another role is another principal.
  expect((await run(["invite", "alice", "--approver"])).code).toBe(0);
  expect((await run(["invite", "alice", "--another"])).code).toBe(0);
  expect((await run(["invite", "alice"])).stderr).toContain("caller:alice has 2 tokens already");
});

test("--public-url is printed instead of an address that works only here", async () => {
  const { run } = await setup();
  const { code, stdout, stderr } = await run(["invite", "alice", "--public-url", "http://192.0.2.7:4180"]);
  expect(code).toBe(0);
  expect(stdout).toContain("export ERRAND_URL='http://192.0.2.7:4180'\n");
  expect(stderr).toContain("they sign in with the same token at http://192.0.2.7:4180/\n");
  expect(stderr).not.toContain("only on this machine");
  const refused = await run(["invite", "bob", "--public-url", "192.0.2.7"]);
  expect([refused.code, refused.stderr]).toEqual([
    64,
    expect.stringContaining("is not an http(s) URL. Pass one such as"),
  ]);
});

test("behind a proxy: prints the broker's public URL, also with a path", async () => {
  const { run } = await setup({ publicUrl: "https://example.com/errand" });
  const { stdout, stderr } = await run(["invite", "alice"]);
  expect(stdout).toContain("export ERRAND_URL='https://example.com/errand'\n");
  expect(stderr).toContain("they sign in with the same token at https://example.com/errand/\n");
  expect(stderr).not.toContain("only on this machine");
});

test("a broker that listens on every address is named by one that others reach", async () => {
  const { run, url } = await setup({ host: "0.0.0.0" });
  const { stdout } = await run(["invite", "alice"]);
  const outside = Object.values(networkInterfaces())
    .flatMap((all = []) => all)
    .filter(({ internal, family }) => !internal && family === "IPv4")
    .map(({ address }) => `http://${address}:${new URL(url).port}`);
  const [, shown = ""] = /^export ERRAND_URL='(.+)'$/m.exec(stdout) ?? [];
  // A machine without a network has only its own address.
  expect(outside.length === 0 ? [url] : outside).toContain(shown);
});
