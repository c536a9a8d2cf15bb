/** What a worker still knows of allowed calls when their conversation or their turn is over. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { keptText } from "../../../src/cli/kept-text.ts";
import { Notes } from "../../../src/cli/work/acp/notes.ts";

async function setup() {
  const folder = mkdtempSync(join(tmpdir(), "errand-notes-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const read = () => Notes.read(keptText(folder, "sessions", ["notes"], /^[\s\S]*$/), "dlg_1");
  const notes = await read();
  await notes.begin("first");
  await notes.add([
    { request_id: "used", digest: "run", title: "run" },
    { request_id: "unused", digest: "walk", title: "walk" },
  ]);
  await notes.markUsed("used");
  return { notes, read };
}

test.each([
  ["the turn has ended", async (notes: Notes) => notes.finish()],
  ["another conversation begins", async (notes: Notes) => notes.begin("second")],
])("when %s, no answer serves a call, and an allowed one may have run", async (_, end) => {
  const { notes, read } = await setup();
  expect(notes.asked.map(({ request_id }) => request_id)).toEqual(["used", "unused"]);
  expect(notes.mayHaveRun("run", ["used", "unused"])).toBe(false);
  await end(notes);
  for (const known of [notes, await read()]) {
    expect(known.asked).toEqual([]);
    expect(known.mayHaveRun("run", ["used", "unused"])).toBe(true);
    // It was not used, is another call, or was denied.
    expect([
      known.mayHaveRun("walk", ["used", "unused"]),
      known.mayHaveRun("fly", ["used", "unused"]),
      known.mayHaveRun("run", ["unused"]),
    ]).toEqual([false, false, false]);
  }
});

test("of a call that another machine asked for, nothing is known, so each may have run", async () => {
  const { notes } = await setup();
  expect(notes.mayHaveRun("fly", ["elsewhere"])).toBe(true);
});
