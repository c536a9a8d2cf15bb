/**
 * The live screen of `errand top`. Events refresh it at once, and a timer refreshes what no event reports, such as
 * presence.
 */
import { Admin } from "../../client/admin.ts";
import { Delegator } from "../../client/delegator.ts";
import type { ConnectionOptions } from "../../client/http.ts";
import { Pages } from "../../client/pages.ts";
import { sleep } from "../../util/timing.ts";
import type { CliHost } from "../host.ts";
import type { Frame, Size, View } from "../screen/full-screen.ts";
import type { Key } from "../screen/keys.ts";
import { layout } from "../screen/layout.ts";
import { Link } from "../screen/link.ts";
import { Scroll } from "../screen/scroll.ts";
import { painter, withCommand } from "../show/output.ts";
import { localTime } from "../show/time.ts";
import { topLines } from "./lines.ts";
import { readSnapshot, type Snapshot } from "./read.ts";

const EVERY_MS = 2000;
/** The shortest time between two readings, however many events arrive. */
const BUSY_MS = 500;
const SMALL_ROWS = 16;
/** With fewer, the agents have the room of the sums above them. */
const TINY_ROWS = 12;
const KEYS = "↑↓ scroll  q quit   'errand inbox' answers questions";
const AWAY = "The broker is unavailable; retrying. What is shown is old.";

export class TopView implements View {
  readonly #host: CliHost;
  readonly #link: Link;
  readonly #everyMs: number;
  readonly #scroll = new Scroll();
  #snapshot: Snapshot;
  #redraw: () => void = () => undefined;
  /** Ends the pause between two readings. */
  #wake: () => void = () => undefined;

  constructor(host: CliHost, connection: ConnectionOptions, first: Snapshot, everyMs = EVERY_MS) {
    this.#everyMs = everyMs;
    this.#host = host;
    this.#link = new Link(connection, () => this.#redraw());
    this.#snapshot = first;
  }

  async run(redraw: () => void, signal: AbortSignal): Promise<void> {
    this.#redraw = redraw;
    const delegator = new Delegator(this.#link.connection);
    // The cursor first and the reading second, so that nothing falls between them.
    const after = await delegator.cursor({}, { signal });
    await Promise.all([this.#watch(delegator, after, signal), this.#readAgain(signal)]);
  }

  draw(size: Size): Frame {
    const paint = painter(this.#host, "stdout");
    const { principal, at } = this.#snapshot;
    const { summary, agents, questions } = topLines(this.#host, paint, this.#snapshot, size.columns);
    const [head = "", ...body] = agents;
    // The questions take at most a third of the screen, with their head; a small one has no room for them.
    const shown = questions.slice(0, size.rows < SMALL_ROWS ? 0 : Math.floor(size.rows / 3));
    return layout(size, paint, {
      title: `errand top, ${principal}`,
      aside: localTime(at),
      head: size.rows < TINY_ROWS ? [head] : [...summary, "", head],
      body,
      scroll: this.#scroll,
      foot: shown.length > 0 ? ["", ...shown] : [],
      status: this.#link.isAway ? AWAY : hiddenText(questions.length - shown.length),
      keys: withCommand(this.#host, KEYS),
    });
  }

  press({ name }: Key): boolean {
    this.#scroll.press(name);
    return name === "q" || name === "escape";
  }

  async #watch(delegator: Delegator, after: string, signal: AbortSignal): Promise<void> {
    for await (const _event of delegator.watch({}, { after, signal })) this.#wake();
  }

  async #readAgain(signal: AbortSignal): Promise<void> {
    const { connection } = this.#link;
    const source = { admin: new Admin(connection), pages: new Pages(connection) };
    while (!signal.aborted) {
      // An event during a reading causes the next one.
      const woken = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#snapshot = await readSnapshot(source, signal);
      this.#redraw();
      await sleep(BUSY_MS, signal);
      const pause = new AbortController();
      const end = AbortSignal.any([signal, pause.signal]);
      await Promise.race([woken, sleep(this.#everyMs - BUSY_MS, end).catch(() => undefined)]);
      pause.abort();
    }
  }
}

const hiddenText = (count: number): string =>
  count > 0 ? `${count} more line${count === 1 ? "" : "s"} of questions` : "";
