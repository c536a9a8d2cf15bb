/** Short ids on the command line: unique beginnings, and `@last`. */
import { expect, test } from "vitest";
import { shortIds } from "../../../src/cli/input/short-id.ts";
import { delegationSchema } from "../../../src/schema/delegation.ts";
import { delegationLike, stubBroker } from "../../client/stub-broker.ts";
import { as } from "../../support/broker.ts";
import { run as runCommand } from "../fake-host.ts";
import { lines, problemIn, setup } from "./cli.ts";

async function withWork() {
  const broker = await setup();
  await broker.api.agent("scout");
  const ids: string[] = [];
  for (let n = 0; n < 3; n += 1)
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

test("of several, one that stands for no delegation is reported, and does not stop the others", async () => {
  const { run, ids } = await withWork();
  const [first = "", second = ""] = ids;
  const { code, stdout, stderr } = await run(["cancel", first, "zzzzzzzzz", second.slice(0, -1)]);
  expect([code, stdout]).toEqual([66, `canceled ${first}\ncanceled ${second}\n`]);
  expect(stderr).toContain("begins with 'zzzzzzzzz'");
  expect(stderr).toContain("errand: 1 of 3 were refused.");
});

test("an unknown beginning, and a head alone, are errors that say what to do", async () => {
  const { run, url, ids } = await withWork();
  // The head says nothing: it must not stand for the only delegation.
  for (const bare of ["dlg_0_", "dlg_0_0", "dlg_"]) {
    expect(await run(["delete", bare])).toMatchObject({ code: 64 });
  }

  const none = await run(["cancel", "zzzzzzzzz"]);
  expect(none.stderr).toContain(
    "none of the newest 1000 delegations that you may see has an id that begins with 'zzzzzzzzz'",
  );
  expect(none.stderr).toContain("Pass the full id of an older one");
  // Only what the caller may see is searched.
  const { token } = await as(url, "caller:bob");
  const foreign = await run(["get", ids[0]?.slice(0, -1) ?? "", "--json"], { token });
  expect(problemIn(foreign.stderr).code).toBe("delegation_not_found");
});

test("an ambiguous beginning is an error that names some of its delegations", async () => {
  const ids = Array.from("abcdefg", (last) => `dlg_0_same${"0".repeat(21)}${last}`);
  const delegations = ids.map((id) => delegationLike({ id }));
  const stub = await stubBroker((_, answer) =>
    answer.json({ delegations, next_cursor: null, scanned_to: null }),
  );
  const env = { url: stub.url, token: "errand_secret" };
  const { code, ...problem } = problemIn((await runCommand(["get", "dlg_0_same", "--json"], { env })).stderr);
  expect([code, problem.details?.ids]).toEqual(["ambiguous_id", ids]);
  const text = await runCommand(["get", "same"], { env });
  expect(text.code).toBe(64);
  expect(text.stderr).toMatch(
    /is the beginning of 7 ids\. Add characters .*\(submitted, scout: count\).*and 2 more\./,
  );
});

test("@last is the newest that this principal delegated", async () => {
  const { run, url, ids } = await withWork();
  const bob = await as(url, "caller:bob");
  const none = await run(["get", "@last"], { token: bob.token });
  expect(none.stderr).toContain("@last: caller:bob has delegated nothing yet");
  const { id } = (await bob.delegate("scout")).body;
  expect((await run(["get", "@last"], { token: bob.token })).stdout).toContain(String(id));
  const own = await run(["get", "@last", "--json"]);
  expect(ids).toContain(lines(delegationSchema.pick({ id: true }).loose(), own.stdout)[0]?.id);
});

test("the shortest unique form has at least 8 characters", () => {
  const ids = ["dlg_0_abcdefghijkl", "dlg_0_abcdefghiz", "dlg_a_zbcdefghijkl"];
  expect([...shortIds(ids).values()]).toEqual(["abcdefghij", "abcdefghiz", "zbcdefgh"]);
});
