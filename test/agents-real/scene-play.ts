/** Plays the scene with each way of waiting for the person, and records what was seen. */
import { type Bench, Subject } from "./bench.ts";
import { REAL } from "./programs.ts";
import { scene, tokensOf } from "./scene.ts";
import { type SceneBroker, startSceneBroker } from "./scene-broker.ts";
import { ConsoleOfPerson } from "./scene-console.ts";
import { type SceneStep, sceneTable, writeScene } from "./scene-results.ts";

interface Play {
  readonly bench: Bench;
  /** Where the programs are installed. */
  readonly cache: string;
  readonly picture: string | undefined;
  readonly writes: boolean;
  readonly say: (line: string) => void;
}

/** Returns whether all went well. */
export async function playScene({ bench, cache, picture, writes, say }: Play): Promise<boolean> {
  let broker: SceneBroker | undefined;
  await bench.start(async (dataDir) => {
    broker = await startSceneBroker(dataDir);
    return broker;
  });
  if (broker === undefined) throw new Error("the broker has not started");
  const subject = new Subject(bench, "claude", REAL.claude);
  await subject.prepare(cache);
  const tokens = await tokensOf(subject);
  const steps: Record<string, SceneStep[]> = {};
  let person: ConsoleOfPerson | undefined;
  try {
    for (const ask of ["park", "hold"] as const) {
      say(`with --ask ${ask}:`);
      await person?.close();
      const page = await ConsoleOfPerson.open(bench.broker.url, tokens.approver);
      person = page;
      const seen: SceneStep[] = [];
      steps[ask] = seen;
      const saw = (step: SceneStep, what: string) => {
        seen.push(step);
        say(`  ${what}`);
      };
      // A held question also has the reason that Claude Code gives.
      const onHour = async () => {
        if (picture !== undefined && ask === "hold") await page.picture(picture);
      };
      await scene({ subject, broker, person: page, tokens }, ask, saw, onHour);
    }
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    say(`  FAILED: ${why}\n${(await subject.seen(undefined)).replaceAll(/^/gm, "    ")}`);
    return false;
  } finally {
    await person?.close();
    await subject.stopAll();
  }
  const result = { packages: REAL.claude.packages, date: new Date().toISOString().slice(0, 10), steps };
  process.stdout.write(`\n${sceneTable(result)}\n`);
  if (writes) await writeScene(result);
  return true;
}
