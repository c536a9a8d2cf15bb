/** The broker and the token that a client uses when they are not passed. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Delegator } from "../../src/index.ts";
import { as, OPERATOR, startBroker } from "../support/broker.ts";
import { delegationLike, ID, stubBroker } from "./stub-broker.ts";

beforeEach(() => {
  vi.stubEnv("ERRAND_URL", undefined);
  vi.stubEnv("ERRAND_TOKEN", undefined);
});
afterEach(() => vi.unstubAllEnvs());

test("ERRAND_URL and ERRAND_TOKEN are enough to delegate", async () => {
  const { url } = await startBroker();
  const caller = await as(url, "caller:alice");
  const scout = await as(url, "agent:scout");
  await scout.agent("scout");
  vi.stubEnv("ERRAND_URL", url);
  vi.stubEnv("ERRAND_TOKEN", caller.token);
  const delegation = await new Delegator().delegate({ target: "scout", task: "look" });
  expect(delegation).toMatchObject({ delegator: "caller:alice", state: "submitted" });
});

describe("the token", () => {
  const sentTo = async (given: ConstructorParameters<typeof Delegator>[0]) => {
    const stub = await stubBroker((_request, answer) => answer.json(delegationLike()));
    await new Delegator({ url: stub.url, ...given }).get(ID);
    return stub.seen[0]?.headers.authorization;
  };

  test("that is passed takes precedence", async () => {
    vi.stubEnv("ERRAND_TOKEN", "environments");
    expect(await sentTo({ token: "given" })).toBe("Bearer given");
  });

  test("of the environment is sent to a passed URL if the environment names no URL", async () => {
    vi.stubEnv("ERRAND_TOKEN", "environments");
    expect(await sentTo({})).toBe("Bearer environments");
  });

  test("of the environment is sent to no other broker than the environment's", async () => {
    vi.stubEnv("ERRAND_URL", "http://127.0.0.1:1");
    vi.stubEnv("ERRAND_TOKEN", "environments");
    expect(await sentTo({})).toBeUndefined();
  });

  test("that is empty counts as none", async () => {
    vi.stubEnv("ERRAND_TOKEN", "");
    expect(await sentTo({})).toBeUndefined();
  });
});

describe("the library's error names what is missing", () => {
  test("a token", async () => {
    const { url } = await startBroker();
    const delegated = new Delegator({ url }).delegate({ target: "scout", task: "look" });
    await expect(delegated).rejects.toThrow(
      /^The request has no bearer token\. Pass \{ token \}, or set ERRAND_TOKEN/,
    );
  });

  test("but not if a token was passed", async () => {
    const { url } = await startBroker();
    const delegated = new Delegator({ url, token: "wrong" }).delegate({ target: "scout", task: "look" });
    await expect(delegated).rejects.not.toThrow("ERRAND_TOKEN");
  });

  test("an agent", async () => {
    const { url } = await startBroker();
    const delegated = new Delegator({ url, token: OPERATOR }).delegate({ target: "scout", task: "look" });
    await expect(delegated).rejects.toMatchObject({
      message: expect.stringContaining("new Admin().putAgent(name)"),
      problem: { detail: "There is no agent 'scout'." },
    });
  });
});
