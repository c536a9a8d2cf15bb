/** A full-screen command in this process: what its screen shows, and keys for it. Limit: no raw mode, no signals. */
import { PassThrough, Writable } from "node:stream";
import { onTestFinished } from "vitest";
import { ScreenText } from "../../support/screen.ts";
import { until } from "../../support/until.ts";
import { type Setting, start } from "../fake-host.ts";

export const KEYS = {
  up: "\u001b[A",
  down: "\u001b[B",
  right: "\u001b[C",
  left: "\u001b[D",
  pageDown: "\u001b[6~",
  shiftTab: "\u001b[Z",
  backspace: "\u007f",
  enter: "\r",
  ctrlC: "\u0003",
  ctrlU: "\u0015",
} as const;

export function screenHere(
  argv: readonly string[],
  setting: Setting,
  [columns, rows]: readonly [number, number] = [80, 24],
) {
  const screen = new ScreenText(columns, rows);
  const stdin = new PassThrough();
  let failure: unknown;
  const written = new Writable({
    decodeStrings: false,
    write(chunk, _encoding, done) {
      try {
        screen.write(String(chunk));
      } catch (error) {
        failure ??= error;
      }
      done();
    },
  });
  const stdout = Object.assign(written, { columns, rows });
  const tty = { stdin: true, stdout: true, stderr: true };
  const { done, stderr } = start([...argv], { childEnv: { NO_COLOR: "1" }, ...setting, stdin, stdout, tty });
  let isOver = false;
  void done.then(() => {
    isOver = true;
  });
  onTestFinished(async () => {
    if (!isOver) stdin.write(KEYS.ctrlC);
    await done;
  });
  const text = () => {
    if (failure !== undefined) throw failure;
    return screen.rows().join("\n");
  };
  return {
    done,
    stderr,
    text,
    rows: () => screen.rows(),
    isRestored: () => screen.isRestored,
    type: (...keys: string[]) => keys.forEach((key) => void stdin.write(key)),
    resize: (toColumns: number, toRows: number) => {
      screen.resize(toColumns, toRows);
      Object.assign(stdout, { columns: toColumns, rows: toRows }).emit("resize");
    },
    /** Waits until the screen shows this, or does not show it any more. */
    shows: async (what: string | RegExp, isShown = true) => {
      const found = () => (typeof what === "string" ? text().includes(what) : what.test(text()));
      await until(() => found() === isShown, { what: String(what) }).catch((error: unknown) => {
        throw new Error(`the screen is\n${text()}`, { cause: error });
      });
    },
  };
}
