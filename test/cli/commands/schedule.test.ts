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
  const list = (await run(["schedule", "list"])).stdout;
  expect(list).toMatch(/^ID +STATE +AGENT +RUNS +NEXT\nsch_/);
  expect(list).toMatch(new RegExp(`\\n${id} .* in \\d+[smhd]\\n$`));
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
  for (const every of ["500ms", "0.5", "1.5s", "0s"]) {
    const { code, stderr } = await create("--every", every);
    expect([every, code, stderr]).toEqual([every, 64, expect.stringContaining("at least 1s")]);
  }
});

test("a schedule has the options of a delegation, and a change keeps what it does not name", async () => {
  const { run, api } = await setup();
  await api.agent("scout");
  await api.agent("smith");
  const terms = ["--budget", "cost=2USD,tokens=5000", "--on-budget", "ask", "--auto-approve", "deploy"];
  const created = await run([
    ...["schedule", "create", "scout", "look", "--every", "1h", "--keep-children", "--delay", "5s"],
    ...terms,
  ]);
  const id = created.stdout.trim();
  const stored = async () => (await api.call("GET", `/v1/schedules/${id}`)).body;
  const delegation = {
    target: "scout",
    task: "look",
    budget: { cost: 2, currency: "USD", tokens: 5_000 },
    on_budget: "ask",
    auto_approve: { actions: ["deploy"] },
    children_on_failure: "keep",
    delay_seconds: 5,
  };
  expect((await stored()).delegation).toEqual(delegation);
  const change = (...args: string[]) => run(["schedule", "change", id, ...args]);

  const daily = await change("--cron", "0 7 * * *", "--zone", "Europe/Berlin", "--name", "daily");
  expect(daily.stdout).toMatch(/^runs +0 7 \* \* \* \(Europe\/Berlin\)$/m);
  expect(await stored()).toMatchObject({ name: "daily", time_zone: "Europe/Berlin", delegation });
  await change("--zone", "Europe/Paris", "--missed", "all");
  expect(await stored()).toMatchObject({ cron: "0 7 * * *", time_zone: "Europe/Paris", missed: "all" });
  await change(
    "look",
    "again",
    "--agent",
    "smith",
    "--budget",
    "tokens=7",
    "--reset",
    "delay_seconds",
    "name",
  );
  const { delay_seconds: _gone, ...kept } = delegation;
  const changed = { ...kept, target: "smith", task: "look again", budget: { tokens: 7 } };
  expect(await stored()).toMatchObject({ name: null, missed: "all", delegation: changed });
  expect((await stored()).delegation).toEqual(changed);
  const { stdout } = await run(["schedule", "get", id]);
  expect(stdout).toMatch(/^budget +7 tokens, asks for more$/m);

  expect(await change()).toMatchObject({ code: 64, stderr: expect.stringContaining("nothing to change") });
  const misspelt = await change("--reset", "tll_seconds");
  expect(misspelt).toMatchObject({ code: 64, stderr: expect.stringContaining("Did you mean ttl_seconds?") });
});

test("a change does not drop the secrets of a callback", async () => {
  const { run, api } = await setup();
  await api.agent("scout");
  const callback = ["--callback", "https://example.com/hook", "--callback-token", "very-secret-token"];
  const created = await run(["schedule", "create", "scout", "look", "--every", "1h", ...callback]);
  const id = created.stdout.trim();
  const change = (...args: string[]) => run(["schedule", "change", id, ...args]);
  expect((await change("--every", "2h")).code).toBe(0);
  const refused = await change("look again");
  expect([refused.code, refused.stderr]).toEqual([64, expect.stringContaining("Repeat --callback")]);
  expect((await change("look again", ...callback)).code).toBe(0);
  expect((await change("--ttl", "1h", "--reset", "callback")).code).toBe(0);
  const { delegation } = (await api.call("GET", `/v1/schedules/${id}`)).body;
  expect(delegation).toEqual({ target: "scout", task: "look again", ttl_seconds: 3_600 });
});
