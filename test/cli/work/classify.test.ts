/**
 * What becomes of a delegation after a preset's program: output captured from Claude Code 2.1.331 and Codex 0.169.0, with
 * ids and paths replaced, and events of the kinds that need a real account.
 */
import { describe, expect, test } from "vitest";
import { claude } from "../../../src/cli/work/presets/claude.ts";
import { codex } from "../../../src/cli/work/presets/codex.ts";
import { captured, type End, lines, verdictOf } from "./verdict-of.ts";

const INIT = { type: "system", subtype: "init", session_id: "s1" };
const SAID = { type: "assistant", message: { content: [{ type: "text", text: "Working." }] } };
const result = (more: object) => ({
  type: "result",
  subtype: "success",
  is_error: false,
  session_id: "s1",
  ...more,
});
const failing = (more: object) => result({ is_error: true, ...more });
const signedOut = "Claude Code is not signed in, or may not use the provider";
const limited = "the provider of Claude Code has reached its limit";

const failed = (code: string, message: unknown) => ({ kind: "failed", code, message });
const has = (text: string) => expect.stringContaining(text);

describe("Claude Code", () => {
  test.each<[string, string, End, object]>([
    [
      "a refused tool",
      captured("claude-denied"),
      {},
      { ...failed("permission_denied", has("Bash touch made-by-agent.txt")), retryable: false },
    ],
    [
      "a deferred tool",
      captured("claude-deferred"),
      {},
      { ...failed("approval_needed", has("Bash touch made-by-agent.txt")), retryable: false },
    ],
    [
      "a conversation that is gone",
      captured("claude-bad-resume"),
      { exitCode: 1, resumes: true },
      { kind: "gone" },
    ],
    [
      "a conversation that is gone, of an older version",
      "",
      { exitCode: 1, stderr: "No conversation found with session ID: x", resumes: true },
      { kind: "gone" },
    ],
    [
      "a result that fits its schema, without a text",
      lines(INIT, SAID, result({ result: "", structured_output: { words: 5 } })),
      {},
      { kind: "completed", answer: '{"words":5}' },
    ],
    [
      "no result that fits its schema",
      captured("claude-unfit"),
      { exitCode: 1 },
      { ...failed("result_invalid", has("must be integer")), retryable: false },
    ],
    ["an answer", lines(INIT, SAID, result({ result: "Done" })), {}, { kind: "completed", answer: "Done" }],
    [
      "an empty answer",
      lines(INIT, SAID, result({ result: "" })),
      {},
      failed("empty_answer", has("without an answer")),
    ],
    [
      "a blank answer",
      lines(INIT, SAID, result({ result: " \n" })),
      {},
      failed("empty_answer", has("without")),
    ],
    ["no result", lines(INIT, SAID), {}, failed("command_failed", "Claude Code printed no answer")],
    ["no output", "", { exitCode: 1 }, failed("command_failed", "exit status 1")],
    [
      "a limit, with status 0 and success",
      lines(INIT, failing({ api_error_status: 429, result: "You have hit your limit, resets 1pm" })),
      {},
      { kind: "unable", reason: `${limited} (429)` },
    ],
    [
      "a limit, with the time",
      lines(
        INIT,
        { type: "rate_limit_event", rate_limit_info: { status: "rejected", resetsAt: 1_900_000_000 } },
        { type: "assistant", error: "rate_limit", message: { content: [{ type: "text", text: "limit" }] } },
        failing({ result: "You've hit your session limit · resets 1pm" }),
      ),
      { exitCode: 1 },
      { kind: "unable", reason: limited, retryAt: 1_900_000_000_000 },
    ],
    [
      "a limit of an older version",
      lines(INIT, failing({ result: "Claude AI usage limit reached|1900000000" })),
      { exitCode: 1 },
      { kind: "unable", reason: limited, retryAt: 1_900_000_000_000 },
    ],
    [
      "overload",
      lines(
        INIT,
        failing({ subtype: "error_during_execution", api_error_status: 529, result: "API Error: 529" }),
      ),
      { exitCode: 1 },
      { kind: "unable", reason: "the provider of Claude Code is overloaded (529)" },
    ],
    [
      "nobody signed in",
      lines(INIT, failing({ api_error_status: 401, result: "no" })),
      { exitCode: 1 },
      { kind: "unable", reason: `${signedOut} (401)` },
    ],
    [
      "nobody signed in, as plain text",
      "Invalid API key · Please run /login\n",
      { exitCode: 1 },
      { kind: "unable", reason: signedOut },
    ],
    [
      "nobody signed in, while a conversation continues",
      "Invalid API key · Please run /login\n",
      { exitCode: 1, resumes: true },
      { kind: "unable", reason: signedOut },
    ],
    [
      "nobody signed in, without a status",
      lines(INIT, failing({ result: "Not logged in · Please run /login" })),
      { exitCode: 1 },
      { kind: "unable", reason: signedOut },
    ],
    [
      "no network",
      lines(INIT, failing({ result: "API Error: Connection error." })),
      { exitCode: 1 },
      { kind: "unable", reason: "Claude Code cannot reach its provider" },
    ],
    [
      "no credit",
      lines(INIT, failing({ result: "Credit balance is too low" })),
      { exitCode: 1 },
      { kind: "unable", reason: "the provider of Claude Code wants a payment" },
    ],
    [
      "an error of the provider that may pass",
      lines(INIT, failing({ api_error_status: 500, result: "API Error: 500" })),
      { exitCode: 1 },
      { ...failed("command_failed", "API Error: 500"), retryable: true },
    ],
    [
      "a limit that it got over",
      lines(INIT, { type: "assistant", error: "rate_limit" }, SAID, result({ result: "Done" })),
      {},
      { kind: "completed", answer: "Done" },
    ],
    [
      "too many turns",
      lines(INIT, SAID, result({ subtype: "error_max_turns", num_turns: 9 })),
      { exitCode: 1 },
      { ...failed("turn_limit", has("limit of requests")), retryable: false },
    ],
    [
      "too much money",
      lines(INIT, SAID, result({ subtype: "error_max_budget_usd", num_turns: 9 })),
      { exitCode: 1 },
      { ...failed("budget_limit", has("has spent")), retryable: false },
    ],
    [
      "a refusal of the model",
      lines(INIT, SAID, result({ result: "I won't.", stop_reason: "refusal" })),
      {},
      { ...failed("model_refused", "I won't."), retryable: false },
    ],
    [
      "an answer that the limit of tokens cut",
      lines(INIT, SAID, result({ result: "First,", stop_reason: "max_tokens" })),
      {},
      { ...failed("token_limit", has("is cut")), retryable: false },
    ],
    [
      "a result of another shape",
      lines(INIT, { type: "result", subtype: "success", result: [{ type: "text", text: "x" }] }),
      {},
      failed("empty_answer", has("without")),
    ],
    // Text of the task decides nothing.
    [
      "an answer about limits",
      lines(INIT, SAID, result({ result: "API Error: 429. Please run /login" })),
      {},
      { kind: "completed", answer: "API Error: 429. Please run /login" },
    ],
    [
      "a failure after the model spoke of a sign-in",
      lines(INIT, { type: "assistant", message: { content: [{ type: "text", text: "Please run /login" }] } }),
      { exitCode: 1, stderr: "Please run /login" },
      failed("command_failed", "Please run /login"),
    ],
  ])("%s", (_what, stdout, end, wanted) => {
    expect(verdictOf(claude, stdout, end).verdict).toEqual(wanted);
  });

  test("keeps what the model said beside the tools that were refused", () => {
    expect(verdictOf(claude, captured("claude-denied")).run.answer).toBe("Done with the tool.");
  });

  test("lists few of many refused tools, each short", () => {
    const denials = Array.from({ length: 500 }, (_, n) => ({
      tool_name: "Write",
      tool_input: { file_path: `/${n}${"x".repeat(5_000)}` },
    }));
    const { verdict } = verdictOf(claude, lines(result({ result: "x", permission_denials: denials })));
    const message = verdict.kind === "failed" ? verdict.message : "";
    expect(message).toContain("and 480 more");
    expect(message.length).toBeLessThan(5_000);
  });
});

describe("Codex", () => {
  const log =
    "2026-01-01T00:00:00Z ERROR codex_core::tools::router: error=approval policy is Never; reject command\n";
  const turnFailed = (message: string) =>
    lines({ type: "thread.started", thread_id: "t" }, { type: "turn.failed", error: { message } });
  test.each<[string, string, End, object]>([
    ["an answer", captured("codex-first"), {}, { kind: "completed", answer: "Hello from the fake model." }],
    [
      "an answer of a continued conversation",
      captured("codex-resumed"),
      { resumes: true },
      { kind: "completed", answer: "Hello from the fake model." },
    ],
    [
      "a refused escalation",
      captured("codex-escalation-refused"),
      { stderr: `${log}${"x".repeat(10_000)}\n` },
      { ...failed("permission_denied", has("a command outside its sandbox")), retryable: false },
    ],
    [
      "a folder without a repository",
      "",
      { exitCode: 1, stderr: "Not inside a trusted directory and --skip-git-repo-check was not specified." },
      failed("command_failed", has("start the worker in one, or pass '--skip-git-repo-check' after '--'")),
    ],
    [
      "a folder without a repository, while a conversation continues",
      "",
      {
        exitCode: 1,
        stderr: "Not inside a trusted directory and --skip-git-repo-check was not specified.",
        resumes: true,
      },
      failed("command_failed", has("--skip-git-repo-check")),
    ],
    [
      "a conversation that is gone",
      "",
      { exitCode: 1, stderr: "Error: no rollout found for thread id t", resumes: true },
      { kind: "gone" },
    ],
    [
      "a limit",
      turnFailed("You've hit your usage limit. Try again at 3:05 PM."),
      { exitCode: 1 },
      { kind: "unable", reason: "the provider of Codex has reached its limit" },
    ],
    [
      "429",
      turnFailed("exceeded retry limit, last status: 429 Too Many Requests"),
      { exitCode: 1 },
      { kind: "unable", reason: "the provider of Codex has reached its limit (429)" },
    ],
    [
      "401",
      turnFailed("unexpected status 401 Unauthorized: "),
      { exitCode: 1 },
      { kind: "unable", reason: "Codex is not signed in, or may not use the provider (401)" },
    ],
    [
      "no network",
      turnFailed("stream disconnected before completion: error sending request for url"),
      { exitCode: 1 },
      { kind: "unable", reason: "Codex cannot reach its provider" },
    ],
    [
      "a failed turn",
      turnFailed("the context is too long"),
      { exitCode: 1 },
      failed("command_failed", "the context is too long"),
    ],
    [
      "no message",
      lines({ type: "thread.started", thread_id: "t" }),
      {},
      failed("command_failed", "Codex printed no answer"),
    ],
    [
      "an empty message",
      lines({ type: "item.completed", item: { type: "agent_message", text: "" } }),
      {},
      failed("empty_answer", has("without")),
    ],
    [
      "a message about a limit",
      lines({ type: "item.completed", item: { type: "agent_message", text: "unexpected status 429" } }),
      {},
      { kind: "completed", answer: "unexpected status 429" },
    ],
  ])("%s", (_what, stdout, end, wanted) => {
    expect(verdictOf(codex, stdout, end).verdict).toEqual(wanted);
  });

  test("a warning is progress and no failure", () => {
    const { progress } = verdictOf(codex, captured("codex-first"));
    expect(progress[0]).toContain("Model metadata for `fake-model` not found");
  });
});
