/** Whether a response is a 200, from its text as it arrives: in any number of pieces. */
const OK = "HTTP/1.1 200";

export class StatusLine {
  #head = "";

  add(text: string): void {
    if (this.#head.length < OK.length) this.#head = (this.#head + text).slice(0, OK.length);
  }

  get isOk(): boolean {
    return this.#head === OK;
  }
}
