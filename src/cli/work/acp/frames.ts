/**
 * Splits the stdout of an ACP agent into lines, and passes on those that are JSON objects. Agents also print warnings
 * there. Limit: after a line without end, nothing that follows can be read.
 */

/** A frame may have the whole text of a file. */
const FRAME_MAX = 16 * 1024 * 1024;
/** A line that is no frame is a warning, and warnings are short. */
const OTHER_MAX = 1024 * 1024;

const NEWLINE = 0x0a;
const BRACE = 0x7b;
/** What may come before JSON: white space, and the byte order mark of some programs on Windows. */
const BEFORE_JSON: readonly number[] = [0x20, 0x09, 0x0d, 0xef, 0xbb, 0xbf];

export interface FrameEvents {
  /** One JSON object, with its line end. */
  readonly onFrame: (line: Uint8Array<ArrayBuffer>, frame: object) => void;
  /** A line that is none. */
  readonly onOther: (line: Buffer) => void;
  /** Once, with the number of bytes that came without a line end. */
  readonly onEndless: (bytes: number) => void;
}

export class Frames {
  readonly #events: FrameEvents;
  #pieces: Buffer[] = [];
  #length = 0;
  #isOver = false;

  constructor(events: FrameEvents) {
    this.#events = events;
  }

  add(chunk: Buffer): void {
    let rest = chunk;
    for (let end = rest.indexOf(NEWLINE); end >= 0 && !this.#isOver; end = rest.indexOf(NEWLINE)) {
      this.#keep(rest.subarray(0, end + 1));
      if (!this.#isOver) this.#take();
      rest = rest.subarray(end + 1);
    }
    if (!this.#isOver && rest.length > 0) this.#keep(rest);
  }

  #keep(piece: Buffer): void {
    this.#pieces.push(piece);
    this.#length += piece.length;
    const isFrame = beginsFrame(this.#pieces[0]);
    if (this.#length <= (isFrame ? FRAME_MAX : OTHER_MAX)) return;
    this.#isOver = true;
    this.#pieces = [];
    this.#events.onEndless(this.#length);
  }

  #take(): void {
    const line = Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#length = 0;
    const json = line.subarray(startOf(line));
    const frame = parsed(json);
    if (frame !== undefined) this.#events.onFrame(new Uint8Array(json), frame);
    else if (line.length > 1) this.#events.onOther(line);
  }
}

const startOf = (line: Buffer): number =>
  Math.max(
    0,
    line.findIndex((byte) => !BEFORE_JSON.includes(byte)),
  );

const beginsFrame = (line: Buffer | undefined): boolean => line?.[startOf(line)] === BRACE;

function parsed(line: Buffer): object | undefined {
  if (line[0] !== BRACE) return undefined;
  try {
    const value: unknown = JSON.parse(line.toString("utf8"));
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
