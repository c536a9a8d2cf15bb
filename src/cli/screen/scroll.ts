/** The position in a text that may be longer than the screen. */
export class Scroll {
  at: number;
  #lines = 0;
  #shown = 0;

  constructor(at = 0) {
    this.at = at;
  }

  /** Takes the number of lines of the text, and of those that the screen shows. */
  fit(lines: number, shown: number): void {
    this.#lines = lines;
    this.#shown = shown;
    this.#move(0);
  }

  press(name: string): void {
    const page = Math.max(1, this.#shown - 1);
    const steps: Readonly<Record<string, number>> = {
      ...{ up: -1, k: -1, down: 1, j: 1, pageup: -page, pagedown: page, " ": page },
      ...{ home: -this.#lines, g: -this.#lines, end: this.#lines, G: this.#lines },
    };
    this.#move(steps[name] ?? 0);
  }

  #move(by: number): void {
    this.at = Math.max(0, Math.min(this.at + by, this.#lines - this.#shown));
  }
}
