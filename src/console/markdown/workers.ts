/**
 * The workers that format texts: at most two, because a page may have fifty messages, and used again, because each loads
 * the parser.
 */
import { admitScript } from "../app/script-address.ts";

const MOST = 2;
/** An idle one is ended after this time. */
const IDLE_MS = 10_000;

let address: Promise<string> | undefined;

const workerAddress = async (): Promise<string> => admitScript((await import("./worker.ts")).workerUrl);

const idle = new Map<Worker, ReturnType<typeof setTimeout>>();
const waiting: (() => void)[] = [];
let working = 0;

/** Does the work with a worker when one is free. It is used again if the work returns true, and ended otherwise. */
export async function withWorker(work: (worker: Worker) => Promise<boolean>): Promise<void> {
  while (working >= MOST) await new Promise<void>((resolve) => waiting.push(resolve));
  working += 1;
  try {
    address ??= workerAddress();
    const url = await address;
    const [[worker, timer] = [new Worker(url, { type: "module" })]] = idle;
    clearTimeout(timer);
    idle.delete(worker);
    if (await work(worker)) idle.set(worker, setTimeout(end, IDLE_MS, worker));
    else worker.terminate();
  } finally {
    working -= 1;
    waiting.shift()?.();
  }
}

function end(worker: Worker): void {
  idle.delete(worker);
  worker.terminate();
}
