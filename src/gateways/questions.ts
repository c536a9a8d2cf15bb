/** Questions of a supervisor to its gateways, and their answers. */
import type { GatewayChild } from "./child.ts";
import type { Report } from "./messages.ts";

export class Questions {
  /** Those that are not answered yet, by id. */
  readonly #open = new Map<number, (child: GatewayChild, report: Report) => void>();
  #asked = 0;

  /** Sends a question; resolves when the gateway answers, and never if it ends before. */
  ask<T>(
    child: GatewayChild,
    send: (id: number) => void,
    read: (report: Report) => T | undefined,
  ): Promise<T> {
    this.#asked += 1;
    const id = this.#asked;
    const answer = new Promise<T>((resolve) => {
      this.#open.set(id, (from, report) => {
        const value = from === child ? read(report) : undefined;
        if (value !== undefined) resolve(value);
      });
    });
    send(id);
    void Promise.race([answer, child.ended]).then(() => this.#open.delete(id));
    return answer;
  }

  /** Call it for a report that answers a question. */
  answered(child: GatewayChild, report: Report & { readonly id: number }): void {
    this.#open.get(report.id)?.(child, report);
  }
}

/** The answers that arrive in time. */
export async function collect<T>(
  children: readonly GatewayChild[],
  ms: number,
  ask: (child: GatewayChild) => Promise<T>,
): Promise<T[]> {
  const answers: T[] = [];
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  const all = children.map((child) =>
    Promise.race([ask(child).then((answer) => void answers.push(answer)), child.ended]),
  );
  await Promise.race([Promise.all(all), late]);
  clearTimeout(timer);
  return answers;
}
