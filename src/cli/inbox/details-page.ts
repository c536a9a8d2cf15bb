/** A delegation as `errand get` shows it, on a screen. Limit: of a very long reply only the beginning. */
import { Delegator } from "../../client/delegator.ts";
import { ErrandApiError } from "../../client/errors.ts";
import type { ConnectionOptions } from "../../client/http.ts";
import { truncate } from "../../schema/text.ts";
import { isCounted } from "../counted.ts";
import { recoveryFor } from "../recovery.ts";
import type { Frame, Size } from "../screen/full-screen.ts";
import type { Key } from "../screen/keys.ts";
import { layout } from "../screen/layout.ts";
import { Scroll } from "../screen/scroll.ts";
import { wrapped } from "../screen/wrap.ts";
import { describe } from "../show/delegation.ts";
import { oneLine, type Painter } from "../show/output.ts";
import { stateRows, voidVotesOf } from "../show/state-details.ts";

const MAX_CHARS = 100_000;
const KEYS = "↑↓ PgUp PgDn scroll  q back";

export class DetailsPage {
  readonly #id: string;
  readonly #scroll = new Scroll();
  #text = "Reading…";
  #lines: { readonly text: string; readonly columns: number; readonly lines: readonly string[] } | undefined;

  constructor(connection: ConnectionOptions, id: string, redraw: () => void, signal?: AbortSignal) {
    this.#id = id;
    void this.#read(connection, signal).then(redraw);
  }

  draw(size: Size, paint: Painter, status: string): Frame {
    const { columns } = size;
    if (this.#lines?.text !== this.#text || this.#lines.columns !== columns)
      this.#lines = { text: this.#text, columns, lines: wrapped(this.#text, columns) };
    const body = this.#lines.lines;
    return layout(size, paint, { title: this.#id, body, scroll: this.#scroll, status, keys: KEYS });
  }

  /** Returns true if the key closes the page. */
  press({ name }: Key): boolean {
    if (["q", "escape", "o", "left"].includes(name)) return true;
    this.#scroll.press(name);
    return false;
  }

  async #read(connection: ConnectionOptions, signal?: AbortSignal): Promise<void> {
    try {
      const delegation = await new Delegator(connection).get(this.#id, { signal });
      const text = describe(delegation, await stateRows(connection, delegation), {
        isCounted: await isCounted(connection, delegation),
        isVoid: await voidVotesOf(connection, delegation),
      });
      const rest = `\n\n… 'errand get ${this.#id} --reply' prints all of it.`;
      this.#text = text.length > MAX_CHARS ? truncate(text, MAX_CHARS) + rest : text;
    } catch (error) {
      const recovery = error instanceof ErrandApiError ? recoveryFor(error) : "";
      this.#text = oneLine(`${error instanceof Error ? error.message : error} ${recovery}`);
    }
  }
}
