/**
 * Notifications on this machine's desktop, by the program that is there. Limit: texts are arguments or variables of that
 * program, never part of a script or of a shell's command line.
 */
import { spawn } from "node:child_process";
import type { CliHost } from "./host.ts";
import { note } from "./show/output.ts";

interface Command {
  readonly file: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

const OSASCRIPT = [
  "on run argv",
  "display notification (item 2 of argv) with title (item 1 of argv)",
  "end run",
];

/** The toast of Windows belongs to a program that has registered itself; PowerShell has. */
const TOAST = `
[Windows.UI.Notifications.ToastNotificationManager, Windows.UI.Notifications, ContentType = WindowsRuntime] > $null
$type = [Windows.UI.Notifications.ToastTemplateType]::ToastText02
$toast = [Windows.UI.Notifications.ToastNotificationManager]::GetTemplateContent($type)
$texts = $toast.GetElementsByTagName('text')
$texts.Item(0).AppendChild($toast.CreateTextNode($env:NOTIFY_TITLE)) > $null
$texts.Item(1).AppendChild($toast.CreateTextNode($env:NOTIFY_TEXT)) > $null
$app = '{1AC14E77-02E7-4E5D-B744-2EB1AE5198B7}\\WindowsPowerShell\\v1.0\\powershell.exe'
[Windows.UI.Notifications.ToastNotificationManager]::CreateToastNotifier($app).Show($toast)`;

export function desktopCommand(platform: string, title: string, text: string): Command {
  if (platform === "darwin") {
    return { file: "osascript", args: [...OSASCRIPT.flatMap((line) => ["-e", line]), title, text] };
  }
  if (platform === "win32") {
    return {
      file: "powershell.exe",
      args: ["-NoProfile", "-NonInteractive", "-Command", TOAST],
      env: { NOTIFY_TITLE: title, NOTIFY_TEXT: text },
    };
  }
  return { file: "notify-send", args: ["--app-name=Errand", "--", title, text] };
}

/** A desktop may be absent without an error of its program. */
const GIVE_UP_MS = 5000;
const HOW = "Answer with 'errand inbox'.";

/** One notification at a time: what is asked meanwhile is told of together. */
export class Desktop {
  readonly #host: CliHost;
  readonly #quiet: boolean;
  readonly #platform: string;
  #waiting: string[] = [];
  #showing: Promise<void> | undefined;
  #isMissing = false;

  /** `quiet`: stderr gets no line for people. */
  constructor(host: CliHost, { quiet = false, platform = process.platform } = {}) {
    this.#host = host;
    this.#quiet = quiet;
    this.#platform = platform;
  }

  asks(agent: string): void {
    this.#waiting.push(agent);
    this.#showing ??= this.#showAll();
  }

  /** Until all notifications are shown. */
  async shown(): Promise<void> {
    await this.#showing;
  }

  async #showAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const agents = this.#waiting;
      this.#waiting = [];
      const [only = ""] = agents;
      const problem = this.#isMissing
        ? "missing"
        : await this.#show(
            agents.length === 1
              ? [`${only} asks`, HOW]
              : [`${agents.length} questions`, `From ${[...new Set(agents)].slice(0, 5).join(", ")}. ${HOW}`],
          );
      if (problem !== undefined) await this.#ring(problem).catch(() => undefined);
    }
    // At once, so that what is asked from now on starts it again.
    this.#showing = undefined;
  }

  /** Returns why nothing was shown. */
  #show([title, text]: readonly [string, string]): Promise<string | undefined> {
    const { file, args, env } = desktopCommand(this.#platform, title, text);
    return new Promise((resolve) => {
      const child = spawn(file, args, {
        env: { ...withoutSecrets(this.#host.childEnv), ...env },
        stdio: "ignore",
        timeout: GIVE_UP_MS,
        windowsHide: true,
      });
      child.on("error", () => resolve(`${file} is not there`));
      child.on("exit", (code) => resolve(code === 0 ? undefined : `${file} failed`));
    });
  }

  async #ring(problem: string): Promise<void> {
    const { stderr, isTty } = this.#host;
    if (!this.#isMissing && !this.#quiet)
      await note(this.#host, `no desktop notifications: ${problem}. The terminal's bell rings instead.`);
    this.#isMissing = true;
    if (isTty.stderr) stderr.write("\u0007");
  }
}

/** The broker's tokens concern no other program. */
const withoutSecrets = (env: CliHost["childEnv"]): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith("ERRAND_")));
