/** `errand schedule` against a real gateway. */
import { expect, test } from "vitest";
import { scheduleRunSchema, scheduleSchema } from "../../../src/schema/schedule.ts";
import { lines, setup } from "../broker/cli.ts";

test("creates, lists, shows, pauses, resumes, runs and deletes a schedule", async () => {
  const { run, api } = await setup();
  await api.agent("scout");
  expect((await run(["schedule", "list"])).stderr).toContain("no schedules yet");
  const created = await run([
    ...["schedule", "create", "scout", "read", "the", "news", "--cron", "30 9 * * MON-FRI"],
    ...["--zone", "Europe/Berlin", "--overlap", "skip", "--name", "morning", "--meta", "team=a"],
  ]);
  const id = created.stdout.trim();
  expect(created).toMatchObject({ code: 0, stdout: expect.stringMatching(/^sch_[0-9a-z]{26}\n$/) });
  expect(created.stderr).toMatch(/next: \d{4}-\d\d-\d\d .*, .*, /);
  const [listed] = lines(scheduleSchema, (await run(["schedule", "list", "--json"])).stdout);
  expect(listed).toMatchObject({
    name: "morning",
    cron: "30 9 * * MON-FRI",
    time_zone: "Europe/Berlin",
    overlap: "skip",
    missed: "one",
    delegation: { target: "scout", task: "read the news", metadata: { team: "a" } },
  });
  expect((await run(["schedule", "list"])).stdout).toMatch(/^ID +STATE +AGENT +RUNS +NEXT\nsch_/);
  expect((await run(["schedule", "pause", id])).stdout).toBe(`paused ${id}\n`);
  const dlg = (await run(["schedule", "run", id])).stdout.trim();
  expect((await api.get(dlg)).body).toMatchObject({ task_preview: "read the news", state: "submitted" });
  const shown = (await run(["schedule", "get", id])).stdout;
  expect(shown).toMatch(/^state +paused$/m);
  expect(shown).toMatch(/^runs +30 9 \* \* MON-FRI \(Europe\/Berlin\)$/m);
  expect(shown).toContain(`${dlg} (run by hand)`);
  expect((await run(["schedule", "resume", id])).stdout).toMatch(`resumed ${id}; next at `);
  const [ran] = lines(scheduleRunSchema, (await run(["schedule", "runs", id, "--json"])).stdout);
  expect(ran).toMatchObject({ kind: "manual", delegation_id: dlg });
  expect((await run(["schedule", "delete", id])).stdout).toBe(`deleted ${id}\n`);
  expect(await run(["schedule", "get", id])).toMatchObject({ code: 66, stderr: expect.stringContaining(id) });
});

test("a wrong expression or zone is refused with the nearest good one and its next times", async () => {
  const { run, api } = await setup();
  await api.agent("scout");
  const create = (...args: string[]) => run(["schedule", "create", "scout", "x", ...args]);
  const wrong = await create("--cron", "0 30 9 * * *", "--zone", "Europe/Berln");
  expect(wrong.code).toBe(64);
  expect(wrong.stderr).toContain("has 6 fields and needs 5");
  expect(wrong.stderr).toContain("'30 9 * * *'");
  expect(wrong.stderr).toMatch(/Europe\/Berlin.* would next run at \d{4}-.*Z, .*Z, .*Z/s);
  for (const args of [
    [],
    ["--every", "1m", "--cron", "* * * * *"],
    ["--every", "1m", "--zone", "UTC"],
    ["--cron", "* * * * *", "--anchor", "2030-01-01T00:00:00Z"],
    ["--every", "1m", "--overlap", "wait"],
  ])
    expect([args, (await create(...args)).code]).toEqual([args, 64]);
});
