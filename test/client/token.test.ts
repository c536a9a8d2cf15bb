import { expect, test, vi } from "vitest";
import { Delegator } from "../../src/index.ts";
import { run } from "../cli/fake-host.ts";
import { as, startBroker } from "../support/broker.ts";

test("a token works with a byte order mark and white space around it; quotes are named when it is refused", async () => {
  const { url } = await startBroker();
  const { token } = await as(url, "caller:alice");
  const answers = async (given: string) => {
    const library = await new Promise((resolve) =>
      resolve(new Delegator({ url: `\uFEFF${url}\r\n`, token: given }).list().next()),
    ).then(
      () => "ok",
      (error: Error) =>
        `${"code" in error ? error.code : ""} ${"recovery" in error ? error.recovery : ""} ${error.message}`,
    );
    const cli = await run(["list"], { env: { url, token: given, dataDir: "/nonexistent" } });
    const printed = `${library} ${cli.stderr}`;
    expect(printed).not.toContain(token);
    return { library, printed, code: cli.code };
  };
  for (const sound of [token, `\uFEFF${token}`, `${token}\r\n`, `\uFEFF ${token}\t\n`])
    expect(await answers(sound), JSON.stringify(sound)).toMatchObject({ library: "ok", code: 0 });
  for (const quoted of [`"${token}"`, `'${token}'\n`, `\uFEFF\`${token}\``, `“${token}”`]) {
    const { library, printed, code } = await answers(quoted);
    expect(library, quoted).toMatch(/^(?:unauthenticated|invalid_token) /);
    expect(code).toBe(77);
    expect(printed.match(/Remove the quotes around the token/g)?.length, quoted).toBeGreaterThan(1);
  }
  for (const [damaged, what] of [
    [`Bearer ${token}`, "begins with 'Bearer'"],
    [`authorization: bearer ${token}`, "begins with 'Bearer'"],
    [`${token.slice(0, 9)} ${token.slice(9)}`, "has white space in it"],
    [`${token}\n${token}`, "has more than one line"],
    [`"${token} "`, "is in quotes"],
    [`${token.slice(0, 9)}é`, "has a character at position 10 that no token has"],
    [[...token].join("\0"), "is not UTF-8 text"],
  ] as const) {
    const { printed } = await answers(damaged);
    expect(printed).toContain(`the token from the option token ${what}`);
    expect(printed).toContain(`errand: the token from ERRAND_TOKEN ${what}. `);
    const flag = await run(["list", "--token", damaged], { env: { url, dataDir: "/nonexistent" } });
    expect(flag.stderr).toContain(`errand: the token from --token ${what}. `);
    vi.stubEnv("ERRAND_TOKEN", damaged);
    // An environment has no NUL.
    if (process.env.ERRAND_TOKEN === damaged)
      expect(() => new Delegator({ url })).toThrow(`the token from ERRAND_TOKEN ${what}`);
    vi.unstubAllEnvs();
  }
  for (const wrong of [`${token} ${token}`, `${token}\n${token}`, `${token}é`, `\u200b${token}`]) {
    const { library, code } = await answers(wrong);
    expect([library.split(" ")[0], code], wrong).toEqual(["invalid_token", 77]);
  }
});
