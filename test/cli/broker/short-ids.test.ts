/** Short ids on the command line: unique beginnings, and `@last`. */
import { expect, test } from "vitest";
import { shortIds } from "../../../src/cli/input/short-id.ts";
import { delegationSchema } from "../../../src/schema/delegation.ts";
import { as } from "../../support/broker.ts";
import { lines, problemIn, setup } from "./cli.ts";

async function withWork() {
  const broker = await setup();
  await broker.api.agent("scout");
  const ids: string[] = [];
  // More than there are first characters, so that two of them share one.
  for (let n = 0; n < 40; n += 1)
    ids.push(String((await broker.api.delegate("scout", { task: `t${n}` })).body.id));
  return { ...broker, ids };
}

test("a unique beginning stands for the id, with or without its head, in arguments and options", async () => {
  const { run, ids } = await withWork();
  const [id = "", other = ""] = ids;
  const bare = id.slice("dlg_0_".length, "dlg_0_".length + 10);
  for (const short of [id, bare, `dlg_0_${bare}`, id.slice(0, -1)]) {
    const { code, stdout } = await run(["get", short]);
    expect([code, stdout]).toEqual([0, expect.stringContaining(id)]);
  }
  expect((await run(["list", "--tree", bare, "--json"])).stdout).toContain(id);
  expect((await run(["delegate", "scout", "part", "--parent", bare, "--json"])).stdout).toContain(
    `"parent_id":"${id}"`,
  );
  expect(await run(["cancel", bare, "--json"])).toMatchObject({ code: 0 });
  const erased = await run(["delete", bare, other.slice(0, 18)]);
  expect(erased.stdout).toBe(`erased ${id}\n`);
  expect(erased.stderr).toContain(other);
});

test("an ambiguous or unknown beginning is an error that says what to do", async () => {
  const { run, url, ids } = await withWork();
  const many = problemIn((await run(["get", "dlg_0_", "--json"])).stderr);
  expect(many.code).toBe("ambiguous_id");
  expect(many.details?.ids).toEqual(expect.arrayContaining(ids));
  const text = await run(["get", "dlg_0_"]);
  expect(text.code).toBe(64);
  expect(text.stderr).toMatch(
    /is the beginning of 40 ids\. Add characters .*\(submitted, scout: t\d+\).*and 35 more\./,
  );

  const none = await run(["cancel", "zzzzzzzzz"]);
  expect(none.stderr).toContain(
    "no id of the newest 1000 delegations that you may see begins with 'zzzzzzzzz'",
  );
  expect(none.stderr).toContain("Pass the full id of an older one");
  // Only what the caller may see is searched.
  const { token } = await as(url, "caller:bob");
  const foreign = await run(["get", ids[0]?.slice(0, -1) ?? "", "--json"], { token });
  expect(problemIn(foreign.stderr).code).toBe("delegation_not_found");
});

test("@last is the newest that this principal delegated", async () => {
  const { run, url, ids } = await withWork();
  const bob = await as(url, "caller:bob");
  const none = await run(["get", "@last"], { token: bob.token });
  expect(none.stderr).toContain("@last: caller:bob has delegated nothing yet");
  const { id } = (await bob.delegate("scout")).body;
  expect((await run(["get", "@last"], { token: bob.token })).stdout).toContain(String(id));
  const own = await run(["get", "@last", "--json"]);
  expect(ids).toContain(lines(delegationSchema, own.stdout)[0]?.id);
});

test("the shortest unique form has at least 8 characters", () => {
  const ids = ["dlg_0_abcdefghijkl", "dlg_0_abcdefghiz", "dlg_a_zbcdefghijkl"];
  expect([...shortIds(ids).values()]).toEqual(["abcdefghij", "abcdefghiz", "zbcdefgh"]);
});
