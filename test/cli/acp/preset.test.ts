/** `errand work --preset` with programs that speak ACP: the scripted agent under their names. */
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { run } from "../fake-host.ts";
import { broker, MODES, type Script, say, scripted } from "./agent.ts";

/** Works on one delegation with the program of this name. */
async function worked(program: string, script: Script, args: readonly string[] = []) {
  const agent = scripted(script);
  const { url, delegate, ended } = await broker();
  const [node, ...rest] = agent.command;
  const lines = [
    "#!/bin/sh",
    `echo "$*" > ${agent.folder}/arguments`,
    `echo "$OPENCODE_PERMISSION" > ${agent.folder}/permission`,
    `exec ${[node, ...rest].join(" ")}`,
  ];
  writeFileSync(join(agent.folder, program), lines.join("\n"));
  chmodSync(join(agent.folder, program), 0o755);
  const id = await delegate();
  const preset = program === "codex-acp" ? "codex" : program;
  const done = await run(["work", "--agent", "coder", "--once", "--preset", preset, ...args], {
    env: { url, token: "operator-token-for-tests" },
    childEnv: { PATH: `${agent.folder}:/usr/bin:/bin`, XDG_STATE_HOME: agent.folder },
  });
  const read = (name: string) => readFileSync(join(agent.folder, name), "utf8").trim();
  return { ...done, agent, read, delegation: done.code === 0 ? await ended(id) : undefined };
}

test("gemini is asked in its default mode, and gets the arguments", async () => {
  const { agent, delegation, read } = await worked(
    "gemini",
    { modes: MODES, turns: [[say("by the preset")]] },
    [...["--", "--model", "x"]],
  );
  expect(delegation?.reply.parts).toEqual([{ text: "by the preset" }]);
  expect(read("arguments")).toBe("--acp --skip-trust --model x");
  const set = agent.log().find(({ method }) => method === "session/set_mode");
  expect(set?.params).toMatchObject({ modeId: "default" });
});

test("opencode has no mode in which it asks, so it gets settings, and nobody is warned", async () => {
  const { delegation, read, stderr } = await worked("opencode", { turns: [[say("done")]] });
  expect(delegation?.state).toBe("completed");
  expect([read("arguments"), JSON.parse(read("permission"))["*"]]).toEqual(["acp", "ask"]);
  expect(stderr).not.toContain("knows no mode");
});

test("codex is asked by its adapter; a mode that asks nobody needs its flag", async () => {
  const { delegation } = await worked("codex-acp", { modes: MODES, turns: [[say("done")]] });
  expect(delegation?.state).toBe("completed");
  const refused = await worked("codex-acp", {}, ["--acp-mode", "agent-full-access"]);
  expect([refused.code, refused.stderr]).toEqual([64, expect.stringContaining("--allow-unapproved-tools")]);
});

test.each([
  [["--ask", "none", "--hold", "5m"], "require --acp, or a preset that asks"],
  [["--ask", "park", "--hold", "5m"], "exclude each other"],
  [["--acp"], "exclude each other"],
])("%s is refused", async (args, words) => {
  const { code, stderr } = await worked("gemini", {}, args);
  expect([code, stderr]).toEqual([64, expect.stringContaining(words)]);
});
