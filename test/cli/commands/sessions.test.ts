/** `errand sessions`: lists, revokes, prints a link; and the audit log of it. */
import { expect, test } from "vitest";
import { listedSessionSchema, sessionCodeSchema } from "../../../src/schema/session.ts";
import { as, client, OPERATOR, request, startBroker } from "../../support/broker.ts";
import { lines } from "../broker/cli.ts";
import { run as runHere } from "../fake-host.ts";

test("sessions are listed and revoked, and a link signs in once", async () => {
  const { url } = await startBroker();
  const alice = await as(url, "caller:alice");
  const run = (token: string, ...args: string[]) => runHere(["sessions", ...args], { env: { url, token } });
  const link = await run(alice.token, "link");
  expect([link.code, link.stderr]).toEqual([0, ""]);
  const [, code] = /^http:\/\/127\.0\.0\.1:\d+\/#code=(errand_code_\w+)\n$/.exec(link.stdout) ?? [];
  const open = () => request(url, "POST", "/v1/sessions", { token: null, body: { code } });
  const { body: session } = await open();
  expect((await open()).status).toBe(401);
  const json = await run(session.token, "list", "--json");
  expect(lines(listedSessionSchema, json.stdout)).toMatchObject([{ id: session.id, current: true }]);
  expect(lines(sessionCodeSchema, (await run(OPERATOR, "link", "--json")).stdout)).toHaveLength(1);

  await client(url).call("POST", "/v1/sessions");
  const listed = await run(OPERATOR, "list");
  expect(listed.stdout).toMatch(
    new RegExp(
      `^ID +PRINCIPAL +TOKEN +AGE +EXPIRES\nses_\\w+ +operator +operator's .*\n${session.id} +caller:alice +${alice.tokenId} `,
    ),
  );
  expect((await run(alice.token, "list")).stdout).not.toContain("operator");
  expect(await run(OPERATOR, "revoke", session.id)).toMatchObject({
    code: 0,
    stdout: `revoked ${session.id}\n`,
  });
  expect((await run(session.token, "list")).code).toBe(77);
  const again = await run(alice.token, "revoke", session.id);
  expect([again.code, again.stderr]).toEqual([66, expect.stringContaining("There is no session")]);

  const audit = await runHere(["audit", "--wide", "--subject", session.id], {
    env: { url, token: OPERATOR },
  });
  expect(audit.stdout).toMatch(
    /operator +session\.revoke +ses_\w+ +\{"principal":"caller:alice"\}\n\S+.* +caller:alice +session\.create +ses_\w+ +\{.*"with":"code"/,
  );
});
