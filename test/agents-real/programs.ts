/**
 * The real programs: what is installed, and how each is pointed at the scripted model. Each has a home of its own, and no
 * way to a real provider.
 */
import { mkdir, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PROGRAMS, type PresetName } from "../../src/cli/work/presets/programs.ts";
import type { CellName } from "./names.ts";

export interface Place {
  /** Where the packages are installed. */
  readonly packages: string;
  readonly home: string;
  readonly model: string;
}

export interface RealProgram {
  readonly name: string;
  /** As npm takes them. */
  readonly packages: readonly string[];
  /** Writes its settings, and returns its variables. */
  readonly prepare: (place: Place) => Promise<Readonly<Record<string, string>>>;
  /** Arguments of `errand work` besides the preset. */
  readonly args?: readonly string[];
  /** What it cannot do, with the reason. These cells are not run. */
  readonly cannot?: Readonly<Partial<Record<CellName, string>>>;
}

const pinned = ({ name, tested }: { readonly name: string; readonly tested: string }) => `${name}@${tested}`;
const { claude, codex, gemini, copilot, opencode } = PROGRAMS;

export const REAL: Readonly<Record<PresetName, RealProgram>> = {
  gemini: {
    name: "Gemini CLI",
    packages: [pinned(gemini.package)],
    prepare: async ({ home, model }) => {
      await settings(home, ".gemini/settings.json", {
        security: { auth: { selectedType: "gemini-api-key" } },
        general: { enableAutoUpdate: false },
        privacy: { usageStatisticsEnabled: false },
      });
      return { GEMINI_API_KEY: "scripted", GOOGLE_GEMINI_BASE_URL: model };
    },
  },
  codex: {
    name: "Codex",
    packages: [pinned(codex.package), pinned(codex.acp.adapter)],
    prepare: async ({ home, model }) => {
      const config = [
        'model = "scripted"\nmodel_provider = "scripted"\n',
        `[model_providers.scripted]\nname = "scripted"\nbase_url = "${model}/v1"\nwire_api = "responses"\n`,
        "request_max_retries = 0\nstream_max_retries = 0\n",
      ];
      await write(home, ".codex/config.toml", config.join("\n"));
      return { CODEX_HOME: join(home, ".codex"), NO_BROWSER: "1" };
    },
  },
  opencode: {
    name: "OpenCode",
    packages: [pinned(opencode.package)],
    prepare: async ({ packages, home, model }) => {
      // As its postinstall script does, which is not run.
      await link(packages, "opencode", `opencode-${process.platform}-${process.arch}/bin/opencode`);
      await settings(home, ".config/opencode/opencode.json", {
        autoupdate: false,
        share: "disabled",
        model: "scripted/scripted",
        provider: {
          scripted: {
            npm: "@ai-sdk/openai-compatible",
            name: "scripted",
            options: { baseURL: `${model}/v1`, apiKey: "scripted" },
            models: {
              scripted: { name: "scripted", tool_call: true, limit: { context: 100_000, output: 8_000 } },
            },
          },
        },
      });
      return { OPENCODE_DISABLE_MODELS_FETCH: "true", OPENCODE_DISABLE_AUTOUPDATE: "true" };
    },
    cannot: {
      limit:
        "OpenCode tries again by itself without an end, and tells nobody; `--idle-timeout` or the deadline of the delegation ends it",
    },
  },
  copilot: {
    name: "GitHub Copilot CLI",
    packages: [pinned(copilot.package)],
    prepare: async ({ model }) => ({
      COPILOT_OFFLINE: "true",
      COPILOT_PROVIDER_BASE_URL: `${model}/v1`,
      COPILOT_MODEL: "scripted",
      COPILOT_AUTO_UPDATE: "false",
    }),
  },
  claude: {
    name: "Claude Code",
    // The program itself, without the launcher, which needs a newer Node.
    packages: [`${claude.package.name}-${process.platform}-${process.arch}@${claude.package.tested}`],
    prepare: async ({ packages, model }) => {
      await link(packages, "claude", `${claude.package.name}-${process.platform}-${process.arch}/claude`);
      return {
        ANTHROPIC_BASE_URL: model,
        ANTHROPIC_API_KEY: "scripted",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
        DISABLE_AUTOUPDATER: "1",
        IS_SANDBOX: "1",
      };
    },
  },
};

async function link(packages: string, name: string, binary: string): Promise<void> {
  const folder = join(packages, "node_modules/.bin");
  await mkdir(folder, { recursive: true });
  await rm(join(folder, name), { force: true });
  await symlink(join("..", binary), join(folder, name));
}

const settings = (home: string, name: string, value: object) => write(home, name, JSON.stringify(value));

async function write(home: string, name: string, text: string): Promise<void> {
  const path = join(home, name);
  await mkdir(join(path, ".."), { recursive: true });
  await writeFile(path, text);
}
