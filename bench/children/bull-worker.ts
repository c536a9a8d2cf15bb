/** BullMQ's worker: one Worker, whose concurrency is the number of lanes unless it is given. Limit: one load at a time. */
import { type Job, Worker } from "bullmq";
import { bullSchema, QUEUE } from "../bull.ts";
import { filler } from "../payload.ts";
import { serve } from "../remote.ts";
import { Tallier } from "../tally.ts";

const tallier = new Tallier();
let worker: Worker | undefined;

serve({
  async start(args) {
    const { lanes, working = lanes, bytes, rate: _rate, ...connection } = bullSchema.parse(args);
    const reply = filler(bytes);
    const work = async (job: Job): Promise<string> => {
      tallier.add(Date.now() - job.timestamp);
      return reply;
    };
    worker = new Worker(QUEUE, work, { connection, concurrency: working });
    worker.on("error", (error) => tallier.fail(error));
    await worker.waitUntilReady();
  },
  mark: () => tallier.mark(),
  take: () => tallier.take(),
  stop: () => worker?.close(),
});
