/** `errand files`: the files that a principal has uploaded. */
import { expect, test } from "vitest";
import { fileSchema } from "../../../src/schema/file.ts";
import { as, OPERATOR, startBroker } from "../../support/broker.ts";
import { fileCalls, startFileBroker } from "../../support/files.ts";
import { lines } from "../broker/cli.ts";
import { run as runHere } from "../fake-host.ts";

test("own files are listed by page and deleted, and no others", async () => {
  const { url } = await startFileBroker();
  const alice = await as(url, "caller:alice");
  const run = (token: string, ...args: string[]) => runHere(["files", ...args], { env: { url, token } });
  expect(await run(alice.token, "list")).toEqual({
    code: 0,
    stdout: "",
    stderr: "errand: no files yet.\nerrand: 0 bytes of 19.1 MiB are used.\n",
  });
  const calls = fileCalls(url, alice.token);
  const ids: string[] = [];
  for (const content of ["one", "two", "three"]) ids.unshift((await calls.upload(content)).body.id);
  await fileCalls(url).upload("the operator's");
  const listed = await run(alice.token, "list");
  expect(listed.stdout).toMatch(
    new RegExp(`^ID +SIZE +AGE +UNTIL\n${ids[0]?.slice(0, 30)}\\S+ +5 bytes +\\d+s +\\d{4}-`),
  );
  expect(listed.stdout.split("\n")).toHaveLength(5);
  expect(listed.stderr).toBe("errand: 11 bytes of 19.1 MiB are used.\n");
  const page = await run(alice.token, "list", "--limit", "2", "--json");
  expect(lines(fileSchema, page.stdout).map(({ id }) => id)).toEqual(ids.slice(0, 2));
  const { next_cursor } = JSON.parse(page.stderr);
  const rest = await run(alice.token, "list", "--cursor", next_cursor, "-o", "name");
  expect(rest.stdout).toBe(`${ids[2]}\n`);
  const deleted = await run(alice.token, "delete", ...ids);
  expect(deleted).toEqual({ code: 0, stdout: ids.map((id) => `deleted ${id}\n`).join(""), stderr: "" });
  const left = lines(fileSchema, (await run(alice.token, "list", "--json")).stdout);
  expect(left.filter(({ expires_at }) => Date.parse(expires_at) > Date.now())).toEqual([]);
  const foreign = (await run(OPERATOR, "list", "-o", "name")).stdout.trim();
  const refused = await run(alice.token, "delete", foreign);
  expect([refused.code, refused.stderr]).toEqual([66, expect.stringContaining("There is no file")]);
  expect((await run(alice.token, "delete", "fil_1")).stderr).toContain("not a file id");
});

test("a broker that stores no files says so", async () => {
  const { url } = await startBroker();
  const { token } = await as(url, "caller:alice");
  const { code, stderr } = await runHere(["files", "list"], { env: { url, token } });
  expect([code, stderr]).toEqual([78, expect.stringContaining("stores no files")]);
});
