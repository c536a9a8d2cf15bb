/** How the program of a preset is run: by ACP, so that a person is asked, or headless. */
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { wayOf } from "../../../src/cli/work/presets/way.ts";
import { freshDir } from "../../support/program.ts";

/** A PATH with these programs. */
function pathWith(...names: string[]): string {
  const dir = freshDir();
  for (const name of names) {
    writeFileSync(join(dir, name), "#!/bin/sh\n");
    chmodSync(join(dir, name), 0o755);
  }
  return dir;
}

test.each([
  ["gemini", {}, ["gemini", "--acp", "--skip-trust", "--model", "x"]],
  ["copilot", { ask: "hold" }, ["copilot", "--acp", "--model", "x"]],
  ["opencode", { ask: "park" }, ["opencode", "acp", "--model", "x"]],
  ["codex", { ask: "hold" }, ["codex-acp", "--model", "x"]],
] as const)("%s %o asks a person", async (preset, choice, command) => {
  const way = await wayOf(preset, choice, ["--model", "x"], "");
  expect(way).toMatchObject({ kind: "acp", command });
});

test.each(["codex", "gemini", "copilot", "opencode"] as const)(
  "%s asks nobody with --ask none",
  async (name) => {
    const way = await wayOf(name, { ask: "none" }, [], pathWith("codex-acp"));
    expect(way).toMatchObject({ kind: "headless", preset: { program: name } });
  },
);

test("codex asks if its adapter is there and gets no arguments of 'codex exec', and says otherwise why not", async () => {
  const path = pathWith("codex-acp");
  expect(await wayOf("codex", {}, [], path)).toMatchObject({ kind: "acp", command: ["codex-acp"] });
  const given = await wayOf("codex", {}, ["--sandbox", "read-only"], path);
  expect(given).toMatchObject({ kind: "headless", note: expect.stringContaining("--ask hold") });
  const without = await wayOf("codex", {}, [], pathWith());
  expect(without).toMatchObject({
    kind: "headless",
    note: expect.stringContaining("npm install -g @agentclientprotocol/codex-acp"),
  });
});

test("opencode is made to ask, unless its own settings shall decide", async () => {
  const asks = await wayOf("opencode", {}, [], "");
  expect(asks).toMatchObject({ asksItself: true });
  expect(JSON.parse("env" in asks ? (asks.env.OPENCODE_PERMISSION ?? "") : "")).toMatchObject({ "*": "ask" });
  const own = await wayOf("opencode", { allowUnapprovedTools: true }, [], "");
  expect(own).toMatchObject({ env: {}, asksItself: false });
});

test.each([{}, { ask: "hold" }, { ask: "park" }] as const)("claude asks by itself (%j)", async (choice) => {
  expect(await wayOf("claude", choice, [], "")).toMatchObject({ kind: "headless" });
});
