/**
 * Runs the example once, as the page does: a message, its question, the approval, the reply. Needs a running server.mjs
 * and release.ts; exits with 0 if all of it arrived through CopilotKit's runtime.
 */
const { URL_OF_PAGE = "http://127.0.0.1:4190", ERRAND_AGENT = "release" } = process.env;
const threadId = crypto.randomUUID();
const messages = [{ id: crypto.randomUUID(), role: "user", content: "v1.4.0" }];

async function run(more = {}) {
  const response = await fetch(`${URL_OF_PAGE}/api/copilotkit/agent/${ERRAND_AGENT}/run`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      threadId,
      runId: crypto.randomUUID(),
      messages,
      tools: [],
      context: [],
      state: {},
      forwardedProps: {},
      ...more,
    }),
  });
  const text = await response.text();
  const events = [...text.matchAll(/^data: (.*)$/gm)].map(([, json]) => JSON.parse(json));
  process.stdout.write(`${response.status} ${events.map(({ type }) => type).join(" ")}\n`);
  if (events.length === 0) process.stdout.write(`${text}\n`);
  return events;
}

const page = await fetch(URL_OF_PAGE);
const asked = (await run()).at(-1);
const interrupt = asked?.outcome?.interrupts?.[0];
const payload = { decision: "approve" };
const events = interrupt
  ? await run({ resume: [{ interruptId: interrupt.id, status: "resolved", payload }] })
  : [];
const said = events.filter(({ type }) => type === "TEXT_MESSAGE_CONTENT").map(({ delta }) => delta);
const isRight = page.ok && events.at(-1)?.type === "RUN_FINISHED" && said.join("") === "released v1.4.0";
process.stdout.write(`${isRight ? "ok" : "failed"}\n`);
process.exitCode = isRight ? 0 : 1;
