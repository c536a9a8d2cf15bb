/** `errand watch --notify` with a program of the desktop that only writes down its arguments. */
import { existsSync, readFileSync } from "node:fs";
import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { desktopCommand } from "../../../src/cli/desktop.ts";
import { client, OPERATOR, startBroker } from "../../support/broker.ts";
import { tempFolder } from "../../support/files.ts";
import { until } from "../../support/until.ts";
import { start } from "../fake-host.ts";

async function watching(childEnv: Record<string, string>) {
  const { url } = await startBroker();
  const api = client(url);
  await api.agent("scout");
  const { id } = (await api.delegate("scout", { task: "Drop the table $(reboot)" })).body;
  const watch = start(["watch", id, "--notify"], {
    env: { url, token: OPERATOR },
    childEnv,
    tty: { stderr: true },
  });
  await until(() => watch.stdout() !== "");
  const [lease] = (await api.lease("scout")).body.leases;
  await api.interrupt(lease.lease_id, { text: "Drop the table $(reboot)?" });
  return { api, id, watch };
}

test.skipIf(process.platform !== "linux")("a question is shown once, without what it asks", async () => {
  const dir = await tempFolder();
  const said = join(dir, "said");
  const program = join(dir, "notify-send");
  await writeFile(program, `#!/bin/sh\nprintf '%s|' "$@" "$ERRAND_TOKEN" >>'${said}'\n`);
  await chmod(program, 0o755);
  const { api, id, watch } = await watching({ PATH: `${dir}:/usr/bin:/bin`, ERRAND_TOKEN: "secret" });
  await until(() => existsSync(said) && readFileSync(said, "utf8").endsWith("||"));
  await api.cancel(id);
  await watch.done;
  expect(readFileSync(said, "utf8")).toBe("--app-name=Errand|--|scout asks|Answer with 'errand inbox'.||");
  expect(watch.stderr()).not.toContain("\u0007");
});

test.skipIf(process.platform !== "linux")(
  "without a desktop it says so once, and rings the bell",
  async () => {
    const { api, id, watch } = await watching({ PATH: await tempFolder() });
    await until(() => watch.stderr().includes("\u0007"));
    await api.cancel(id);
    await watch.done;
    expect(watch.stderr().match(/no desktop notifications: notify-send is not there/g)).toHaveLength(1);
  },
);

test.each(["darwin", "win32", "linux"])("on %s a text is never part of a script", (platform) => {
  const text = `"; & reboot $(reboot) '`;
  const { args, env = {} } = desktopCommand(platform, text, "-e");
  const given = [...args.filter((one) => one.includes("reboot")), ...Object.values(env)];
  expect(given.filter((one) => one.includes("reboot"))).toEqual([text]);
});
