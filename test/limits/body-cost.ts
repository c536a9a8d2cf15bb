/**
 * Measures how long one request of each shape in shapes.ts keeps the event loop of a gateway busy: see --help. Prints the
 * slowest first; `--write` also writes them to measured.json.
 */
import { randomUUID } from "node:crypto";
import { Gateway } from "../../bench/gateway.ts";
import { closeStages, Stage } from "../../bench/stage.ts";
import { orExit, parseArguments, unknownName, WrongArguments } from "../../scripts/arguments.mjs";
import { type Measured, update } from "./measured.ts";
import { SHAPES } from "./shapes.ts";

const HELP = `npm run prove -- limits bodies [--write] [VALUES] [WORD ...]

Measures how long one request of each shape keeps the event loop of a gateway
busy, and prints the slowest first. --write updates docs/settings.md.

  VALUES  how many values a body has   (90000)
  WORD    only the shapes whose name contains one of the words:
          ${SHAPES.map(({ name }) => name).join("\n          ")}
`;
const { words, count, isWritten } = orExit(HELP, () => {
  const parsed = parseArguments(process.argv.slice(2), { write: { type: "boolean" } }, { names: true });
  const [given = "90000", ...words] = parsed.positionals;
  const known = SHAPES.map(({ name }) => name);
  for (const word of words)
    if (!known.some((name) => name.includes(word))) throw unknownName("shape", word, known);
  const count = Number(given);
  if (!Number.isInteger(count) || count < 1)
    throw new WrongArguments(`VALUES is a whole number from 1 on, not '${given}'.`);
  return { ...parsed, words, count, isWritten: parsed.values.write === true };
});
const WAIT_MS = 500;
const WARM_UPS = 3;
const WARM_VALUES = 400;

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
    const rows: (Measured["bodies"]["rows"][number] & { readonly start: string })[] = [];
    for (const { name, method = "POST", path, as, headers = {}, body } of SHAPES) {
      if (words.length > 0 && !words.some((word) => name.includes(word))) continue;
      const textOf = (n: number) => JSON.stringify(body(n)).replaceAll("{agent}", worker.agent);
      const keys = () => "idempotency-key" in headers && { "idempotency-key": randomUUID() };
      const send = (text: string) =>
        fetch(gateway.url + path.replace("{agent}", worker.agent), {
          method,
          headers: {
            authorization: `Bearer ${tokens[as]}`,
            "content-type": "application/json",
            ...headers,
            ...keys(),
          },
          body: text,
          // An accepted one waits for its result.
          signal: AbortSignal.timeout(WAIT_MS),
        });
      // So that the code is compiled.
      for (let n = 0; n < WARM_UPS; n += 1) await send(textOf(WARM_VALUES)).catch(() => null);
      const text = textOf(count);
      const before = await gateway.busyMs();
      const answer = await send(text).catch(() => null);
      const said = (await answer?.text().catch(() => "")) ?? "waits";
      const ms = Math.round((await gateway.busyMs()) - before);
      const start = said.slice(0, 160).replaceAll(/\s+/g, " ");
      rows.push({ name, kb: Math.round(text.length / 1_000), status: answer?.status ?? 0, ms, start });
    }
    rows.sort((a, b) => b.ms - a.ms);
    for (const { name, kb, status, ms, start } of rows)
      process.stdout.write(
        `${String(ms).padStart(6)} ms  ${String(kb).padStart(5)} kB  ${status}  ${name}  ${start}\n`,
      );
    if (isWritten)
      update(() => ({ bodies: { values: count, rows: rows.map(({ start: _start, ...row }) => row) } }));
  } finally {
    await gateway.stop();
    await stage.close();
  }
}

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => void closeStages().finally(() => process.exit(130)));
}
await main();
