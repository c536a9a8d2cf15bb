/**
 * Answers agents' questions: approves a question that contains one of its words, denies any other, and ignores requests
 * for credentials. It starts with the oldest stored event, so it also answers earlier questions. Needs ERRAND_URL and an
 * approver's ERRAND_TOKEN. Limit: a fixed rule in place of a person; it only answers yes or no.
 */
import { Delegator, ErrandApiError, textOf } from "../src/index.ts";

const words = process.argv.slice(2);
const HELP = `usage: approver.ts WORD...

Approves every question that contains one of the words, and denies all others. Ignores questions for a credential. Reads ERRAND_URL and ERRAND_TOKEN (an approver's).
`;
if (process.argv.includes("--help")) {
  process.stdout.write(HELP);
  process.exit(0);
}
if (words.length === 0) {
  process.stderr.write(HELP);
  process.exit(64);
}

const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());

const delegator = new Delegator();

async function answer(id: string): Promise<void> {
  const { interrupt } = await delegator.get(id);
  // Already answered or ended; or it asks for a credential, which yes or no does not answer.
  if (interrupt === null || interrupt.kind === "auth") return;
  const question = interrupt.requests.map(({ message }) => textOf(message)).join("\n");
  const isFine = words.some((word) => question.includes(word));
  const options = { interruptId: interrupt.id, text: isFine ? "go ahead" : "not this one" };
  await (isFine ? delegator.approve(id, options) : delegator.deny(id, options));
  process.stdout.write(`${isFine ? "approved" : "denied"}: ${question}\n`);
}

try {
  for await (const event of delegator.watch({}, { after: "0", signal: stop.signal })) {
    if (event.type !== "DELEGATION_STATUS" || event.status !== "interrupted") continue;
    await answer(event.delegation_id).catch((error: unknown) => {
      // Somebody else answered first, or the question needs more than yes or no.
      if (!(error instanceof ErrandApiError) || error.status === 0) throw error;
      process.stderr.write(`left alone: ${error.message}\n`);
    });
  }
} catch (error) {
  if (!stop.signal.aborted) throw error;
}
