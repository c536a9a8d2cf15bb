/** Commands that wait for parts which they delegated, with the program, against a real gateway. */
import { expect, test } from "vitest";
import { as } from "../../support/broker.ts";
import { until } from "../../support/until.ts";
import { setup } from "./cli.ts";

/** Delegates two parts at its first run, and joins their replies at the second. */
const LEAD = `
if [ -z "$ERRAND_CHILDREN_FILE" ]; then
  a=$(errand delegate smith "$ERRAND_TASK one" --parent "$ERRAND_DELEGATION_ID")
  b=$(errand delegate smith "$ERRAND_TASK two" --parent "$ERRAND_DELEGATION_ID")
  echo "{\\"wait_for\\": {\\"children\\": [\\"$a\\", \\"$b\\"]}}"
  exit 79
fi
node -e '
  const { outcome, children } = JSON.parse(require("fs").readFileSync(process.env.ERRAND_CHILDREN_FILE));
  const texts = children.map(({ state, delegation }) => state + " " + delegation.reply.parts[0].text);
  console.log(outcome + ": " + texts.join(", "));
'`;

async function started() {
  const setting = await setup();
  const { api, url, start } = setting;
  await api.agent("lead");
  await api.agent("smith");
  const { token } = await as(url, "agent:lead");
  const lead = (script: string, ...options: string[]) =>
    start(["work", "--agent", "lead", ...options, "--", "sh", "-c", script], {
      env: { ERRAND_COMMAND_TOKEN: token },
    });
  const ended = (id: string) =>
    until(async () => {
      const { body } = await api.get(id);
      return ["completed", "failed"].includes(body.state) ? body : undefined;
    });
  return { ...setting, lead, ended };
}

test("a command waits for its parts without a worker, and runs again with their results", async () => {
  const { api, lead, ended, worker } = await started();
  const { id } = (await api.delegate("lead", { task: "part" })).body;
  const first = lead(LEAD, "--json");
  await until(async () => (await api.get(id)).body.state === "awaiting_children");
  await until(() => first.stdout().includes('"waits_for":"children"'));
  first.child.kill("SIGTERM");
  await first.ended();
  await worker("smith", "tr", "a-z", "A-Z");
  const children = (await api.call("GET", `/v1/delegations?parent_id=${id}`)).body.delegations;
  await Promise.all(children.map((child: { id: string }) => ended(child.id)));
  const second = lead(LEAD);
  expect(await ended(id)).toMatchObject({
    state: "completed",
    attempt: 1,
    reply: { parts: [{ text: "ended: completed PART ONE, completed PART TWO" }] },
  });
  expect(second.stderr()).not.toContain("waits");
});

test("a command that waits with exit status 0 fails, and learns which one is expected", async () => {
  const { api, lead, ended } = await started();
  const { id } = (await api.delegate("lead", { task: "part" })).body;
  lead(LEAD.replace("exit 79", "exit 0"));
  expect(await ended(id)).toMatchObject({
    state: "failed",
    error: { message: expect.stringContaining("the exit status is 0: to wait, end with exit status 79") },
  });
});

test("parts that have ended by then, or that it may not wait for, are answered in the same run", async () => {
  const { api, lead, ended, worker } = await started();
  await worker("smith", "cat");
  const quick = LEAD.replace(
    "  echo",
    '  errand get "$a" --wait >/dev/null; errand get "$b" --wait >/dev/null\n  echo',
  );
  lead(quick);
  const waits = (await api.delegate("lead", { task: "part" })).body.id;
  expect(await ended(waits)).toMatchObject({
    reply: { parts: [{ text: "ended: completed part one, completed part two" }] },
  });
  const [first] = (await api.call("GET", `/v1/delegations?parent_id=${waits}`)).body.delegations;
  expect((await api.call("GET", `/v1/delegations/${waits}/events?after=0`)).body.events).not.toContainEqual(
    expect.objectContaining({ status: "awaiting" }),
  );
  expect(first.state).toBe("completed");
});

test("a wait that is not valid, or that is repeated for ever, fails the delegation and says why", async () => {
  const { api, lead, ended, worker } = await started();
  await worker("smith", "cat");
  lead(`case "$ERRAND_TASK" in
    invalid) echo '{"wait_for": {"children": []}}' ;;
    foreign) echo '{"wait_for": {"children": ["dlg_0_00000000000000000000000000"]}}' ;;
    *) a=$(errand delegate smith same --parent "$ERRAND_DELEGATION_ID" --idempotency-key same --wait >/dev/null
         errand list --tree "$ERRAND_DELEGATION_ID" --json | sed -n '2s/.*"id":"\\(dlg_[a-z0-9_]*\\)".*/\\1/p')
       echo "{\\"wait_for\\": {\\"children\\": [\\"$a\\"]}}" ;;
    esac
    exit 79`);
  const failed = async (task: string) => {
    const { error } = await ended((await api.delegate("lead", { task, max_attempts: 1 })).body.id);
    return `${error.code}: ${error.message}`;
  };
  expect(await failed("invalid")).toMatch(/^command_failed: exit status 79, .* valid wait: .*children/);
  expect(await failed("foreign")).toMatch(/is not a child of/);
  expect(await failed("loop")).toMatch(/^command_failed: the command waits again for the same children/);
});
