/**
 * Measures the CPU time of one request of each shape in shapes.ts, on a gateway of its own: `node --import tsx
 * test/limits/body-cost.ts [values] [words of the shapes' names]`. Prints the slowest first.
 */
import { Gateway } from "../../bench/gateway.ts";
import { closeStages, Stage } from "../../bench/stage.ts";
import { SHAPES } from "./shapes.ts";

const [given = "90000", ...words] = process.argv.slice(2);
const values = Number(given);
const WAIT_MS = 2_000;

async function main(): Promise<void> {
  const stage = await Stage.open();
  const gateway = await Gateway.start(stage);
  try {
    const [worker] = await gateway.agents(1, "cost");
    if (!worker) throw new Error("no agent");
    const tokens = {
      caller: await gateway.token("caller:cost"),
      agent: worker.token,
      operator: gateway.operator,
    };
    const rows: { readonly ms: number; readonly text: string }[] = [];
    for (const { name, method = "POST", path, as, headers = {}, body } of SHAPES) {
      if (words.length > 0 && !words.some((word) => name.includes(word))) continue;
      const text = JSON.stringify(body(values)).replaceAll("{agent}", worker.agent);
      const send = () =>
        fetch(gateway.url + path.replace("{agent}", worker.agent), {
          method,
          headers: { authorization: `Bearer ${tokens[as]}`, "content-type": "application/json", ...headers },
          body: text,
          // An accepted one waits for its result.
          signal: AbortSignal.timeout(WAIT_MS),
        });
      const before = (await gateway.usage()).cpu_us;
      const answer = await send().catch(() => null);
      const said = (await answer?.text().catch(() => "")) ?? "waits";
      const ms = Math.round(((await gateway.usage()).cpu_us - before) / 1_000);
      const size = `${Math.round(text.length / 1_000)} kB`;
      const start = said.slice(0, 160).replaceAll(/\s+/g, " ");
      rows.push({
        ms,
        text: `${String(ms).padStart(6)} ms  ${size.padStart(8)}  ${answer?.status ?? 0}  ${name}  ${start}`,
      });
    }
    for (const { text } of rows.sort((a, b) => b.ms - a.ms)) process.stdout.write(`${text}\n`);
  } finally {
    await gateway.stop();
    await stage.close();
  }
}

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => void closeStages().finally(() => process.exit(130)));
}
await main();
