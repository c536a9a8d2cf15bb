/** The programs as delegators: each gets the broker as an MCP server, and is run once without a person. */
import { execFile } from "node:child_process";
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import type { PresetName } from "../../src/cli/work/presets/programs.ts";
import type { Subject } from "./bench.ts";

const execute = promisify(execFile);

interface Mcp {
  readonly url: string;
  readonly token: string;
}

interface Delegating {
  readonly program: string;
  /** Writes the configuration of the MCP server. */
  readonly configure: (home: string, mcp: Mcp) => void;
  readonly args: (prompt: string, home: string) => readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** On its stdin. */
  readonly readsPrompt?: true;
}

const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });

function merge(path: string, more: object): void {
  mkdirSync(dirname(path), { recursive: true });
  let known: unknown = {};
  try {
    known = JSON.parse(readFileSync(path, "utf8"));
  } catch {
    // There is none yet.
  }
  writeFileSync(path, JSON.stringify({ ...Object(known), ...more }));
}

const CLAUDE_FILE = "errand-mcp.json";

export const DELEGATING: Readonly<Record<PresetName, Delegating>> = {
  claude: {
    program: "claude",
    configure: (home, { url, token }) =>
      merge(join(home, CLAUDE_FILE), {
        mcpServers: { errand: { type: "http", url, headers: bearer(token) } },
      }),
    args: (prompt, home) => [
      ...["-p", prompt, "--mcp-config", join(home, CLAUDE_FILE), "--strict-mcp-config"],
      ...["--allowedTools", "mcp__errand__delegate_task"],
    ],
    // Without the search for tools, the model is offered those of the server.
    env: { ENABLE_TOOL_SEARCH: "false" },
  },
  codex: {
    program: "codex",
    configure: (home, { url }) =>
      appendFileSync(
        join(home, ".codex/config.toml"),
        `\n[mcp_servers.errand]\nurl = "${url}"\nbearer_token_env_var = "ERRAND_TOKEN"\ntool_timeout_sec = 60\ndefault_tools_approval_mode = "approve"\n`,
      ),
    args: (prompt) => ["exec", "--skip-git-repo-check", prompt],
  },
  gemini: {
    program: "gemini",
    configure: (home, { url, token }) =>
      merge(join(home, ".gemini/settings.json"), {
        mcpServers: { errand: { httpUrl: url, headers: bearer(token), trust: true } },
      }),
    args: (prompt) => ["--skip-trust", "-p", prompt],
  },
  copilot: {
    program: "copilot",
    configure: (home, { url, token }) =>
      merge(join(home, ".copilot/mcp-config.json"), {
        mcpServers: { errand: { type: "http", url, headers: bearer(token), tools: ["*"] } },
      }),
    args: (prompt) => ["-p", prompt, "--allow-tool", "errand"],
  },
  opencode: {
    program: "opencode",
    configure: (home, { url, token }) =>
      merge(join(home, ".config/opencode/opencode.json"), {
        mcp: { errand: { type: "remote", url, enabled: true, oauth: false, headers: bearer(token) } },
      }),
    // Its argument would be quoted once more.
    args: () => ["run"],
    readsPrompt: true,
  },
};

/** What the program says when its model has called `delegate_task` for this agent. */
export async function delegated(subject: Subject, preset: PresetName, agent: string): Promise<string> {
  const { program, configure, args, env = {}, readsPrompt } = DELEGATING[preset];
  const { url, token } = subject.bench.broker;
  const home = subject.environment.HOME ?? "";
  configure(home, { url: `${url}/mcp`, token });
  const prompt = `[[call: delegate_task {"agent":"${agent}","task":"hello","wait_seconds":30}]]`;
  const running = execute(program, [...args(prompt, home)], {
    cwd: subject.project,
    env: { ...subject.environment, ...env, ERRAND_TOKEN: token },
  });
  running.child.stdin?.end(readsPrompt ? prompt : undefined);
  const { stdout, stderr } = await running;
  return `${stdout}\n${stderr}`;
}
