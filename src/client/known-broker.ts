/**
 * Which answers are the broker's. Each of them has its id; a proxy, another program or another broker at the same address
 * has not. Limit: a program in between that copies the id is believed.
 */
import type { HttpResponse } from "./transport.ts";

export class KnownBroker {
  #id: string | undefined;

  /** The id in the first answer that had one; undefined before that. */
  get id(): string | undefined {
    return this.#id;
  }

  /** Whether an answer with this id is the broker's. The first id that is given decides. */
  accepts(id: string | null | undefined): boolean {
    if (!id) return false;
    this.#id ??= id;
    return id === this.#id;
  }

  /** As {@link accepts}, by the header that all of a broker's answers have. */
  sent({ headers }: Pick<HttpResponse, "headers">): boolean {
    return this.accepts(headers.get(BROKER_HEADER));
  }
}

/** The header with the broker's id. */
export const BROKER_HEADER = "errand-broker";
