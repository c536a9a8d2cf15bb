/**
 * What becomes of a delegation after a headless run of Gemini CLI 0.61.0, Copilot CLI 1.0.102 and OpenCode 1.18.33: captured
 * output, with ids replaced, and events of the kinds that need a real account. What is refused, cut, empty or limited is
 * never completed.
 */
import { describe, expect, test } from "vitest";
import { copilot } from "../../../src/cli/work/presets/copilot.ts";
import { gemini } from "../../../src/cli/work/presets/gemini.ts";
import { opencode } from "../../../src/cli/work/presets/opencode.ts";
import type { Preset } from "../../../src/cli/work/presets/preset.ts";
import { captured, type End, lines, verdictOf } from "./verdict-of.ts";

type Case = readonly [what: string, stdout: string, end: End, verdict: object];

const has = (text: string) => expect.stringContaining(text);
const failed = (code: string, message: unknown) => ({ kind: "failed", code, message });
const unable = (reason: unknown) => ({ kind: "unable", reason });
const HELLO = { kind: "completed", answer: "Hello from the fake model." };

const GEMINI = (() => {
  const init = { type: "init", session_id: "s" };
  const said = (content: string) => ({ type: "message", role: "assistant", content, delta: true });
  const tool = {
    type: "tool_use",
    tool_name: "run_shell_command",
    tool_id: "1",
    parameters: { command: "ls" },
  };
  const ok = { type: "result", status: "success" };
  const error = (message: string) => ({ type: "result", status: "error", error: { type: "Error", message } });
  const policy = { type: "policy_violation", message: "Tool execution denied by policy." };
  const cases: readonly Case[] = [
    ["an answer", captured("gemini-answer"), {}, HELLO],
    [
      "an answer in pieces, after a tool",
      lines(init, said("I look."), tool, said("Two "), said("words."), ok),
      {},
      { kind: "completed", answer: "Two words." },
    ],
    [
      "nothing after a tool",
      lines(init, said("I look."), tool, ok),
      {},
      failed("empty_answer", has("without")),
    ],
    [
      "a tool that its policy denies",
      lines(
        init,
        tool,
        { type: "tool_result", tool_id: "1", status: "error", error: policy },
        said("Done."),
        ok,
      ),
      {},
      failed("permission_denied", has("denied by policy")),
    ],
    [
      "an answer that a filter or a limit cut",
      lines(
        init,
        said("Half"),
        { type: "error", severity: "error", message: "The answer was blocked." },
        {
          type: "result",
          status: "error",
        },
      ),
      { exitCode: 1 },
      failed("command_failed", "The answer was blocked."),
    ],
    [
      "a limit",
      lines(init, error("[API Error: You exceeded your current quota, please check your plan]")),
      { exitCode: 1 },
      unable(has("has reached its limit")),
    ],
    [
      "a key that is not valid",
      lines(init, error("[API Error: API key not valid. Please pass a valid API key.]")),
      { exitCode: 1 },
      unable(has("is not signed in")),
    ],
    [
      "a conversation that is gone",
      "",
      { exitCode: 42, resumes: true, stderr: "Error resuming session: no such session" },
      { kind: "gone" },
    ],
    ["no output", "", { exitCode: 1 }, failed("command_failed", "exit status 1")],
  ];
  return cases;
})();

const COPILOT = (() => {
  const message = (content: string) => ({ type: "assistant.message", data: { content, toolRequests: [] } });
  const done = (exitCode = 0) => ({ type: "result", sessionId: "s", exitCode });
  const denied = {
    type: "tool.execution_complete",
    data: { success: false, error: { code: "denied", message: "Permission denied" } },
  };
  const wrong = { type: "tool.execution_complete", data: { success: false, error: { code: "failure" } } };
  const error = (data: object) => ({ type: "session.error", data });
  const cases: readonly Case[] = [
    [
      "an answer after a tool",
      captured("copilot-answer"),
      {},
      { kind: "completed", answer: "Done with the tool." },
    ],
    [
      "a denied tool",
      lines(denied, message("Done."), done()),
      {},
      failed("permission_denied", has("Permission denied")),
    ],
    [
      "a tool that failed",
      lines(wrong, message("Done."), done()),
      {},
      { kind: "completed", answer: "Done." },
    ],
    ["an empty answer", lines(message(""), done()), {}, failed("empty_answer", has("without"))],
    [
      "a limit",
      lines(error({ message: "You have exceeded your quota.", statusCode: 429 }), done(1)),
      { exitCode: 1 },
      unable(has("has reached its limit (429)")),
    ],
    [
      "nobody signed in",
      "",
      { exitCode: 1, stderr: "Error: No authentication information found." },
      unable(has("is not signed in")),
    ],
    [
      "another failure",
      lines(message("Half"), done(1)),
      { exitCode: 1 },
      failed("command_failed", "exit status 1"),
    ],
  ];
  return cases;
})();

const OPENCODE = (() => {
  const text = (said: string) => ({ type: "text", sessionID: "s", part: { text: said } });
  const finish = (reason: string) => ({ type: "step_finish", sessionID: "s", part: { reason } });
  const refusedTool = {
    type: "tool_use",
    sessionID: "s",
    part: {
      tool: "bash",
      state: { status: "error", error: "The user rejected permission to use this specific tool call." },
    },
  };
  const error = (data: object) => ({ type: "error", sessionID: "s", error: { name: "APIError", data } });
  const cases: readonly Case[] = [
    ["an answer", captured("opencode-answer"), {}, HELLO],
    [
      "a refused tool",
      lines(refusedTool, text("Done."), finish("stop")),
      {},
      failed("permission_denied", has("bash: The user rejected permission")),
    ],
    [
      "an answer that was cut",
      lines(text("Half"), finish("length")),
      {},
      failed("token_limit", has("is cut")),
    ],
    ["no text", lines(finish("stop")), {}, failed("command_failed", has("printed no answer"))],
    [
      "a limit",
      lines(error({ message: "You exceeded your current quota", statusCode: 429 })),
      { exitCode: 1 },
      unable(has("has reached its limit (429)")),
    ],
    [
      "a key that is not valid, with status 0",
      lines(error({ message: "Incorrect API key provided", statusCode: 401 })),
      {},
      unable(has("is not signed in, or may not use the provider (401)")),
    ],
  ];
  return cases;
})();

describe.each<readonly [string, Preset, readonly Case[]]>([
  ["Gemini CLI", gemini, GEMINI],
  ["Copilot CLI", copilot, COPILOT],
  ["OpenCode", opencode, OPENCODE],
])("%s", (_name, preset, cases) => {
  test.each(cases)("%s", (_what, stdout, end, wanted) => {
    expect(verdictOf(preset, stdout, end).verdict).toMatchObject(wanted);
  });

  test("continues a conversation by its id", () => {
    const { run } = verdictOf(preset, cases[0]?.[1] ?? "");
    expect(preset.args(run.session, ["--extra"], ["/f"]).join(" ")).toContain(run.session ?? "?");
  });
});
