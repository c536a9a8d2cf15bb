/**
 * The programs that `--preset` knows, as data: how each is installed, started and signed in to, and the version with which
 * `npm run prove -- agents` was run. Limit: what a version changes, only the next run shows.
 */
import { claude } from "./claude.ts";
import { codex } from "./codex.ts";
import { copilot } from "./copilot.ts";
import { gemini } from "./gemini.ts";
import { opencode } from "./opencode.ts";
import type { Preset } from "./preset.ts";

/** A package of npm, and the version of it that was run. */
export interface Package {
  readonly name: string;
  readonly tested: string;
}

/** How a program is started as an agent of the Agent Client Protocol. */
export interface AcpStart {
  readonly command: readonly [string, ...string[]];
  /** Of an adapter, which is a package of its own. */
  readonly adapter?: Package;
  /** What makes the program ask, where no mode of a session does. The worker's own variables do not replace it. */
  readonly asksBy?: Readonly<Record<string, string>>;
}

/** How to see whether somebody has signed in, without a call that costs something. */
export interface SignIn {
  /** Each is a key, or chooses a provider that needs none. */
  readonly variables: readonly string[];
  /** Written by a sign-in. A variable may move the folder. */
  readonly files: readonly { readonly folder: string; readonly movedBy?: string; readonly name: string }[];
  /** What to do, as the end of a sentence. */
  readonly how: string;
}

export interface Program {
  /** The mode in which nobody can be asked. */
  readonly headless: Preset;
  /** Undefined: it is run by its headless mode only. */
  readonly acp?: AcpStart;
  readonly package: Package;
  readonly signIn: SignIn;
}

const OPENCODE_ASKS = { "*": "ask", read: "allow", glob: "allow", grep: "allow", list: "allow" };

export const PROGRAMS = {
  claude: {
    headless: claude,
    package: { name: "@anthropic-ai/claude-code", tested: "2.1.331" },
    signIn: {
      variables: [
        ...["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"],
        ...["CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"],
      ],
      files: [{ folder: ".claude", movedBy: "CLAUDE_CONFIG_DIR", name: ".credentials.json" }],
      how: "run 'claude' and then /login",
    },
  },
  codex: {
    headless: codex,
    acp: {
      command: ["codex-acp"],
      adapter: { name: "@agentclientprotocol/codex-acp", tested: "2.6.0" },
    },
    package: { name: "@openai/codex", tested: "0.169.0" },
    signIn: {
      variables: ["CODEX_API_KEY", "OPENAI_API_KEY"],
      files: [{ folder: ".codex", movedBy: "CODEX_HOME", name: "auth.json" }],
      how: "run 'codex login'",
    },
  },
  gemini: {
    headless: gemini,
    acp: { command: ["gemini", "--acp", "--skip-trust"] },
    package: { name: "@google/gemini-cli", tested: "0.61.0" },
    signIn: {
      variables: ["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS"],
      files: [{ folder: ".gemini", name: "oauth_creds.json" }],
      how: "run 'gemini' and then /auth",
    },
  },
  copilot: {
    headless: copilot,
    acp: { command: ["copilot", "--acp"] },
    package: { name: "@github/copilot", tested: "1.0.102" },
    signIn: {
      variables: ["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", "COPILOT_PROVIDER_BASE_URL"],
      files: [],
      how: "run 'copilot' and then /login",
    },
  },
  opencode: {
    headless: opencode,
    acp: {
      command: ["opencode", "acp"],
      asksBy: { OPENCODE_PERMISSION: JSON.stringify(OPENCODE_ASKS) },
    },
    package: { name: "opencode-ai", tested: "1.18.33" },
    signIn: {
      variables: ["OPENCODE_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"],
      files: [{ folder: ".local/share/opencode", name: "auth.json" }],
      how: "run 'opencode auth login'",
    },
  },
} as const satisfies Readonly<Record<string, Program>>;

export type PresetName = keyof typeof PROGRAMS;

/** The error's advice when a program is missing. */
export const installText = (name: string, pack: Package, { how }: SignIn): string =>
  `Install ${name} with 'npm install -g ${pack.name}', and sign in: ${how}.`;
