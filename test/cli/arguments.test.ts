/** The command line: help, usage errors, and the options of `serve`. */
import { describe, expect, test } from "vitest";
import type { ServeOptions } from "../../src/cli/host.ts";
import { run } from "./fake-host.ts";

describe("help", () => {
  test("--help goes to stdout, with examples", async () => {
    const { code, stdout, stderr } = await run(["delegate", "--help"]);
    expect(code).toBe(0);
    expect(stdout).toContain("$ errand delegate scout");
    expect(stdout).toContain("--json");
    expect(stderr).toBe("");
  });

  test.each([[[]], [["agent"]], [["token"]]])(
    "%j alone prints help to stderr and is a usage error",
    async (argv) => {
      const { code, stdout, stderr } = await run(argv);
      expect(code).toBe(64);
      expect(stdout).toBe("");
      expect(stderr).toContain("Usage: errand");
    },
  );

  test("--version", async () => {
    expect(await run(["--version"])).toEqual({ code: 0, stdout: "1.2.3\n", stderr: "" });
  });
});

describe("a usage error exits 64 with one line that says what to do", () => {
  test.each([
    [["delgate", "scout"], "unknown command 'delgate'"],
    [["delegate"], "missing required argument 'agent'"],
    [["delegate", "scout", "x", "--frobnicate"], "unknown option '--frobnicate'"],
    [["delegate", "scout", "x", "--priority", "10"], "from 0 to 9"],
    [["delegate", "scout", "x", "--timeout", "3"], "--timeout requires --wait"],
    [
      ["notify", "get", "sub_1zh5xt1r5mdtpwemek1cw3y…"],
      "'errand notify list' shows ids. It lacks 3 characters.",
    ],
    [["schedule", "get", `sch_${"1".repeat(25)}`], "It lacks 1 character."],
    [["rules", "get", "rul_1"], "'errand rules list' shows ids. It lacks 25 characters."],
    [["rules", "get", "sub_1"], "Pass the whole id of a rule (rul_…); 'errand rules list' shows ids. See"],
    [["delegate", "scout"], "no task given"],
    [["delegate", "scout", "  "], "the task is empty"],
    [["delegate", "scout", "--file", "/nonexistent"], "cannot be read"],
    [["delegate", "scout", "x", "--file", "y"], "given twice"],
    [["get"], "missing required argument 'id'"],
    [["watch", "dlg_1", "--target", "scout"], "either an id or filters"],
    [["watch", "--types", "NOISE"], "'NOISE' is not an event type"],
    [["work", "--", "cat"], "required option '--agent <name>' not specified"],
    [["work", "--agent", "scout"], "Pass a command after '--'"],
    [["work", "--agent", "Scout!", "--", "cat"], "an agent name is"],
    [["work", "--agent", "scout", "--worker-id", "a b", "--", "cat"], "without spaces"],
    [["agent", "put", "scout", "--file", "/nonexistent"], "not a readable JSON file"],
  ])("%j", async (argv, said) => {
    const { code, stdout, stderr } = await run(argv);
    expect(code).toBe(64);
    expect(stdout).toBe("");
    expect(stderr).toMatch(/^errand: .+\n$/);
    expect(stderr).toContain(said);
  });

  test("with --json it is problem JSON", async () => {
    const { code, stderr } = await run(["delegate", "scout", "x", "--timeout", "3", "--json"]);
    expect(code).toBe(64);
    expect(JSON.parse(stderr)).toMatchObject({ code: "usage", category: "PROTOCOL", retryable: false });
  });

  test("binary data on stdin is refused", async () => {
    const { code, stderr } = await run(["delegate", "scout", "-"], {
      stdin: Buffer.from([0x61, 0xff, 0x00]),
    });
    expect(code).toBe(64);
    expect(stderr).toContain("stdin is not UTF-8 text");
  });
});

test("serve passes on its options and the broker's exit code", async () => {
  let given: ServeOptions | undefined;
  const { code } = await run(["serve", "--port", "0", "--data-dir", "/tmp/x"], {
    onServe: (options) => {
      given = options;
      return 78;
    },
  });
  expect(code).toBe(78);
  expect(given).toEqual({ port: "0", dataDir: "/tmp/x" });
});

test("a command that does not exist ends `work` before anything is leased", async () => {
  const { code, stderr } = await run(["work", "--agent", "scout", "--", "no-such-command-anywhere"]);
  expect(code).toBe(78);
  expect(stderr).toContain("'no-such-command-anywhere' was not found");
});

test("an invalid batch line and an invalid message are refused with the field and the reason", async () => {
  const env = { url: "http://127.0.0.1:9", token: "t" };
  const batch = '{"tsk": "x"}\n["x"]\n';
  const lines = await run(["delegate", "scout", "--batch", "-"], { env, stdin: batch });
  expect(lines.code).toBe(64);
  expect(lines.stderr).toContain("errand: line 1: tsk: unknown field; did you mean task?");
  expect(lines.stderr).toContain("errand: line 2: the line: must be an object, not a list.");
  const message = await run(["delegate", "scout", "--message-file", "-"], {
    env,
    stdin: '{"parts": []}',
  });
  const key = await run(["delegate", "scout", "--callback", "ftp://x", "x"], { env });
  expect(key.stderr).toContain("must be an http or https URL.");
  expect(message.stderr).toContain("stdin is not an A2A Message: parts: at least 1 item");
});
