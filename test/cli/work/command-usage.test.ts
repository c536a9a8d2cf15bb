/** The file in which a command reports what it uses, while the command runs. */
import { appendFile, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { CommandUsage } from "../../../src/cli/work/command-usage.ts";
import type { UsageReport } from "../../../src/schema/usage.ts";
import { until } from "../../support/until.ts";

async function setup(everyMs = 5) {
  const folder = await mkdtemp(join(tmpdir(), "errand-usage-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const reports: UsageReport[] = [];
  const unread: string[] = [];
  const usage = new CommandUsage(
    (used) => reports.push(used),
    (why) => unread.push(why),
    everyMs,
  );
  const newest = (wanted: UsageReport) =>
    until(() => JSON.stringify(reports.at(-1)) === JSON.stringify(wanted), {
      what: JSON.stringify(wanted),
      timeoutMs: 5_000,
    });
  return { usage, reports, unread, newest, file: join(folder, "usage.json") };
}

const line = (usage: object) => `${JSON.stringify(usage)}\n`;
const usd = (cost: number) => ({ cost, currency: "USD" });

test("the last whole line is reported while the command runs; one that is not whole, when it is", async () => {
  const { usage, reports, newest, file } = await setup();
  await usage.during(file, async () => {
    await writeFile(file, line({ input_tokens: 5 }));
    await newest({ input_tokens: 5 });
    await appendFile(file, `${line({ input_tokens: 7 })}{"input_tokens": 1`);
    await newest({ input_tokens: 7 });
    await appendFile(file, "2, ");
    await appendFile(file, '"output_tokens": 1}');
    await newest({ input_tokens: 12, output_tokens: 1 });
    await appendFile(file, "\nno usage\n");
    await writeFile(`${file}.new`, '{\n  "input_tokens": 20\n}\n');
    await rename(`${file}.new`, file);
    await newest({ input_tokens: 20, output_tokens: 1 });
  });
  expect(reports).toHaveLength(4);
});

test("no amount shrinks, and each new command of a lease counts on from the one before", async () => {
  const { usage, newest, file } = await setup();
  await usage.during(file, async () => {
    await writeFile(file, line({ input_tokens: 500, ...usd(0.1) }));
    await newest({ input_tokens: 500, ...usd(0.1) });
    await writeFile(file, line({ input_tokens: 9, ...usd(0.2) }));
    await newest({ input_tokens: 500, ...usd(0.2) });
  });
  await rm(file);
  await usage.during(file, async () => {
    await writeFile(file, line({ input_tokens: 3, ...usd(0.1) }));
    await newest({ input_tokens: 503, ...usd(0.3) });
  });
});

test("the end of a command is reported at once, also of one that fails", async () => {
  const { usage, reports, file } = await setup(3_600_000);
  const failed = usage.during(file, async () => {
    await writeFile(file, "x".repeat(100_000) + line({}) + line({ input_tokens: 1 }));
    throw new Error("stopped");
  });
  await expect(failed).rejects.toThrow("stopped");
  expect(reports).toEqual([{ input_tokens: 1 }]);
});

test("members that are unknown or null do not hide the others; what is no report is said", async () => {
  const { usage, reports, unread, file } = await setup(3_600_000);
  const write = (text: string) => usage.during(file, () => writeFile(file, text));
  await write(line({ input_tokens: 5, total_tokens: 7, cost: null }));
  expect([reports, unread]).toEqual([[{ input_tokens: 5 }], []]);
  await write(line({ prompt_tokens: 5, completion_tokens: 2 }));
  await write(line({ input_tokens: 5, cost: 0.1 }));
  await write("5 tokens");
  await write("");
  expect(reports).toHaveLength(1);
  expect(unread).toEqual([
    "it has none of input_tokens, output_tokens, cached_tokens, reasoning_tokens, cost",
    "currency: a cost needs its currency",
    "it is not JSON",
  ]);
});
