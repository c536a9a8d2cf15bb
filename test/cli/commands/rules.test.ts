/** `errand rules` against a real gateway. */
import { expect, test } from "vitest";
import { ruleSchema } from "../../../src/schema/rule.ts";
import { lines, setup } from "../broker/cli.ts";

test("creates, lists, shows and revokes a rule", async () => {
  const { run, api } = await setup();
  await api.agent("scout");
  expect((await run(["rules", "list"])).stderr).toContain("no rules yet");
  const created = await run([
    ...["rules", "create", "scout", "fs.*", "--path", "path=/srv/site", "--equals", "mode=append"],
    ...["--equals", "n=3", 'text="3"', "--max", "/options/depth=2", "--min", "/options/depth=0"],
    ...["--items", 'argv=["git", "status"]', "--fits", 'to={"type":"string"}'],
    ...["--for", "20m", "--uses", "5", "--note", "builds"],
  ]);
  const id = created.stdout.trim();
  expect(created).toMatchObject({ code: 0, stdout: expect.stringMatching(/^rul_[0-9a-z]{26}\n$/) });
  expect(created.stderr).toContain('text is "3", path is /srv/site or below');
  const [listed] = lines(ruleSchema, (await run(["rules", "list", "--json"])).stdout);
  expect(listed).toMatchObject({
    ...{ id, agent: "scout", action: "fs.*", decision: "approve", only_these_arguments: true },
    ...{ max_uses: 5, uses: 0, note: "builds", state: "active" },
    arguments: [
      { name: "mode", equals: "append" },
      { name: "n", equals: 3 },
      { name: "text", equals: "3" },
      { name: "path", path_prefix: "/srv/site" },
      { name: "argv", items_prefix: ["git", "status"] },
      { pointer: "/options/depth", minimum: 0 },
      { pointer: "/options/depth", maximum: 2 },
      { name: "to", schema: { type: "string" } },
    ],
  });
  expect((await run(["rules", "list", "--agent", "scout"])).stdout).toMatch(
    /^ID +STATE +AGENT +DECISION +ACTION +USES +UNTIL\nrul_\S+ +active +scout +approve +fs\.\* +0 of 5 +in \d+m\n$/,
  );
  const shown = (await run(["rules", "get", id])).stdout;
  expect(shown).toMatch(/^state +active$/m);
  expect(shown).toMatch(/^uses +0 of 5$/m);
  expect(shown).toContain("path is /srv/site or below");
  expect(shown).toContain(`errand rules revoke ${id}`);
  expect((await run(["rules", "revoke", id])).stdout).toBe(`revoked ${id}\n`);
  expect((await run(["rules", "get", id])).stdout).toMatch(/^state +revoked at /m);
});

test("denials, and what is not valid", async () => {
  const { run, api } = await setup();
  await api.agent("scout");
  const create = (...args: string[]) => run(["rules", "create", "scout", ...args]);
  const denial = JSON.parse((await create("db.*", "--deny", "--json")).stdout);
  expect(denial).toMatchObject({ decision: "deny", only_these_arguments: false, expires_at: null });
  expect(JSON.parse((await create("x", "--others", "allow", "--json")).stdout).only_these_arguments).toBe(
    false,
  );
  for (const args of [
    ["x", "--path", "/srv"],
    ["x", "--max", "n=x"],
    ["x", "--items", "argv=git status"],
    ["x", "--fits", "n={"],
    ["x", "--path", "path=/srv/../etc"],
    ["a*b"],
    ["x", "--for", "1h", "--until", "2999-01-01T00:00:00Z"],
    ["x", "--uses", "0"],
    ["x", "--others", "some"],
  ])
    expect([args, (await create(...args)).code]).toEqual([args, 64]);
  expect((await run(["rules", "revoke", "rul_1"])).code).toBe(64);
  expect((await run(["rules", "get", `rul_${"0".repeat(26)}`])).code).toBe(66);
});
