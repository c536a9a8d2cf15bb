/** `errand notify` against a real gateway, and the setting `notify` of `errand agent put`. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { subscriptionSchema, subscriptionTestSchema } from "../../../src/schema/subscription.ts";
import { startReceiver } from "../../support/receiver.ts";
import { lines, setup } from "../broker/cli.ts";

const SECRET = `whsec_${Buffer.alloc(32, 1).toString("base64")}`;
const TOPIC = "https://ntfy.sh/a-long-secret-topic";

test("creates with several channels, lists, shows, tests, resumes and deletes; no secret is printed", async () => {
  const { run, dir } = await setup({ callbackAllow: ["127.0.0.1"] });
  const { url, received } = await startReceiver((count) => (count === 1 ? 204 : 500));
  expect((await run(["notify", "list"])).stderr).toContain("no subscriptions yet");
  const file = join(dir, "token");
  await writeFile(file, "file-token\n");
  const created = await run(
    [
      ...["notify", "create", "--on", "question,ended", "--webhook", url, "--secret-env", "HOOK_SECRET"],
      ...["--token-file", file, "--ntfy", TOPIC, "--token-env", "NTFY_TOKEN"],
      ...["--slack-env", "SLACK_URL", "--after", "10m", "--agent", "scout", "--state", "failed"],
      ...["--quiet", "22:00-07:00", "--zone", "Europe/Berlin", "--digest-above", "3", "--name", "nights"],
    ],
    {
      env: {
        HOOK_SECRET: SECRET,
        NTFY_TOKEN: "tk_secret",
        SLACK_URL: "https://hooks.slack.com/services/T0/B0/XXXX",
      },
    },
  );
  const id = created.stdout.trim();
  expect(created).toMatchObject({ code: 0, stdout: expect.stringMatching(/^sub_[0-9a-z]{26}\n$/) });
  expect(created.stderr).toContain(`errand notify test ${id}`);
  const json = (await run(["notify", "list", "--json"])).stdout;
  expect(lines(subscriptionSchema, json)).toMatchObject([
    {
      ...{ id, name: "nights", events: ["question", "ended"], digest_above: 3 },
      filter: { agents: ["scout"], states: ["failed"] },
      quiet: { from: "22:00", to: "07:00", time_zone: "Europe/Berlin" },
      deliver: [
        { kind: "webhook", to: url, after_seconds: 0 },
        { kind: "ntfy", after_seconds: 0 },
        { kind: "slack", after_seconds: 600 },
      ],
    },
  ]);
  const listed = (await run(["notify", "list"])).stdout;
  expect(listed).toMatch(/^ID +STATE +WAITING +CHANNELS +EVENTS\nsub_\S+ +ok +0 +webhook /);
  // On 80 columns, also in a pipe.
  expect(listed).toContain(`\n${id} `);
  const shown = (await run(["notify", "get", id])).stdout;
  expect(shown).toMatch(/^quiet +22:00 to 07:00 \(Europe\/Berlin\)$/m);
  expect(shown).toMatch(/^only +agents scout, states failed$/m);
  expect(shown).toMatch(/^ +slack \S+, after 10 min$/m);
  for (const secret of [SECRET, "file-token", "tk_secret", "XXXX"])
    expect([created.stdout, created.stderr, json, listed, shown].join("\n")).not.toContain(secret);
  expect((await run(["notify", "resume", id])).stdout).toBe(`resumed ${id}; 0 waiting\n`);
  expect((await run(["notify", "delete", id])).stdout).toBe(`deleted ${id}\n`);
  expect((await run(["notify", "get", id])).code).toBe(66);
  expect(received).toEqual([]);
});

test("a change keeps what is not given: settings, parts of the filter, channels with their secrets", async () => {
  const { run } = await setup({ callbackAllow: ["127.0.0.1"] });
  const { url, received } = await startReceiver(() => 204);
  const made = await run(
    [
      ...["notify", "create", "--webhook", url, "--token-env", "T", "--agent", "scout", "--state", "failed"],
      ...[
        "--quiet",
        "22:00-07:00",
        "--zone",
        "UTC",
        "--digest-above",
        "3",
        "--every",
        "1m",
        "--name",
        "nights",
      ],
    ],
    { env: { T: "tok" } },
  );
  const id = made.stdout.trim();
  const change = async (...args: string[]) => {
    const { code, stdout, stderr } = await run(["notify", "change", id, ...args, "--json"]);
    expect([code, stderr]).toEqual([0, ""]);
    return lines(subscriptionSchema, stdout)[0];
  };
  expect(await change("--on", "ended,question", "--delegator", "caller:ci", "--every", "2m")).toMatchObject({
    ...{ name: "nights", events: ["ended", "question"], digest_above: 3, every_seconds: 120 },
    filter: { agents: ["scout"], states: ["failed"], delegators: ["caller:ci"] },
    quiet: { from: "22:00" },
    deliver: [{ kind: "webhook", to: url }],
  });
  expect((await change("--zone", "Europe/Paris"))?.quiet).toEqual({
    ...{ from: "22:00", to: "07:00", time_zone: "Europe/Paris" },
  });
  expect((await change("--quiet", "23:00-06:00"))?.quiet).toMatchObject({
    ...{ from: "23:00", time_zone: "Europe/Paris" },
  });
  const reset = await change("--reset", "agents", "states", "quiet", "name", "digest_above", "every_seconds");
  expect(reset).toMatchObject({ name: null, quiet: null, digest_above: 10, every_seconds: 300 });
  expect(reset?.filter).toEqual({ delegators: ["caller:ci"] });
  await run(["notify", "test", id]);
  expect(received[0]?.headers.authorization).toBe("Bearer tok");
  // Given channels replace all.
  expect(await change("--ntfy", TOPIC, "--after", "1m", "--reset", "delegators")).toMatchObject({
    filter: {},
    deliver: [{ kind: "ntfy", after_seconds: 60 }],
  });
  expect((await run(["notify", "change", id, "--name", "days"])).stdout).toMatch(/^name +days$/m);
});

test.each([
  [[], "nothing to change"],
  [["--reset", "agent"], "Did you mean agents?"],
  [["--reset", "events"], "They are name, quiet, digest_above"],
  [["--reset", "states", "--state", "failed"], "--state sets what --reset states resets"],
  [["--quiet", "22:00-07:00"], "--quiet requires --zone"],
  [["--zone", "Europe/Paris"], "--zone requires --quiet"],
  [["--quiet", "22:00-07:00", "--zone", "Mars/Base"], "--zone"],
  [["--quiet", "22:00-22:00", "--zone", "UTC"], "--quiet: both times are the same"],
  [["--name", ""], "--name"],
  [["--ntfy", "https://ntfy.sh/"], "--ntfy: must end with the topic"],
])("what cannot be changed is refused with the option: %j", async (args, message) => {
  const { run } = await setup();
  const id = (await run(["notify", "create", "--ntfy", TOPIC])).stdout.trim();
  const { code, stderr } = await run(["notify", "change", id, ...args]);
  expect([code, stderr]).toEqual([64, expect.stringContaining(message)]);
});

test("a test says of each channel what became of it, and fails if one was not delivered", async () => {
  const { run } = await setup({ callbackAllow: ["127.0.0.1"] });
  const { url, received } = await startReceiver((count) => (count === 1 ? 204 : 500));
  const made = await run(["notify", "create", "--webhook", url, "--token-env", "T"], { env: { T: "tok" } });
  const id = made.stdout.trim();
  expect(await run(["notify", "test", id])).toMatchObject({ code: 0, stdout: "webhook: delivered\n" });
  expect(received[0]?.headers.authorization).toBe("Bearer tok");
  const failed = await run(["notify", "test", id]);
  expect([failed.code, failed.stdout]).toEqual([75, expect.stringMatching(/^webhook: .*500/)]);
  const json = await run(["notify", "test", id, "--json"]);
  expect(lines(subscriptionTestSchema, json.stdout)[0]?.deliver).toMatchObject([{ delivered: false }]);
});

test.each([
  [[], "there is no channel"],
  [["--after", "10m", "--ntfy", TOPIC], "after the channel"],
  [["--ntfy", TOPIC, "--secret-env", "S"], "takes no secret"],
  [["--ntfy", "https://ntfy.sh/"], "--ntfy: must end with the topic"],
  [
    ["--email", "a@example.com", "--ntfy", "http://10.0.0.7/t"],
    "--ntfy: a private address; ERRAND_CALLBACK_ALLOW",
  ],
  [["--slack-env", "LOCAL"], "--slack-env: a private address"],
  [["--ntfy", TOPIC, "--token-env", "UNSET"], "there is no token in UNSET. Set UNSET."],
  [["--webhook", "https://example.com", "--secret-env", "BAD"], "--secret-env: must be whsec_"],
  [["--email", "ann"], "ann@example.com"],
  [
    ["--email", "ann@example.com"],
    "--email: this broker has no mail server; its operator sets ERRAND_SMTP_URL",
  ],
  [["--ntfy", TOPIC, "--on", "everything"], "question_expiring"],
  [["--ntfy", TOPIC, "--quiet", "22:00-07:00"], "--quiet requires --zone"],
  [["--ntfy", TOPIC, "--quiet", "late", "--zone", "UTC"], "22:00-07:00"],
  [
    ["--ntfy", TOPIC, "--quiet", "22:00-07:00", "--zone", "Europe/Berln"],
    "--zone: no IANA time zone; the nearest is Europe/Berlin",
  ],
  [["--ntfy", TOPIC, "--state", "done"], "nothing ends as 'done'"],
  [["--ntfy", TOPIC, "--state", "working"], "nothing ends as 'working'"],
  [["--ntfy", TOPIC, "--agent", "No Agent"], "--agent: "],
])("notify create %j is refused", async (args, said) => {
  const { run, api } = await setup();
  const env = { BAD: "hush-hush", LOCAL: "http://127.0.0.1/hush-hush" };
  const { code, stdout, stderr } = await run(["notify", "create", ...args], { env });
  expect([code, stdout, stderr]).toEqual([64, "", expect.stringContaining(said)]);
  expect(stderr).not.toContain("hush-hush");
  expect(stderr).not.toMatch(/deliver|filter\.|quiet\./);
  expect((await api.call("GET", "/v1/subscriptions")).body.subscriptions).toEqual([]);
});

test("agent put changes what notifications may do, and keeps what is not named", async () => {
  const { run } = await setup();
  const put = (...args: string[]) => run(["agent", "put", "scout", ...args]);
  const shown = await put("--notify-contents", "ntfy,slack", "--notify-links", "sign_in");
  expect(shown.stdout).toMatch(/^notify +what it asks by ntfy, slack; links require sign-in$/m);
  expect((await put("--notify-one-tap", "deny")).stdout).toMatch(
    /^notify +what it asks by ntfy, slack; links require sign-in; buttons deny at once$/m,
  );
  await put("--notify-contents", "none");
  const { stdout } = await run(["agent", "get", "scout", "--json"]);
  expect(JSON.parse(stdout).notify).toEqual({ contents: [], links: "sign_in", one_tap: "deny" });
  expect((await put("--reset", "notify")).stdout).not.toMatch(/^notify/m);
  expect((await put("--notify-contents", "pager")).code).toBe(64);
});
