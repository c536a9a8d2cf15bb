/** The part of the demo in which the delegation runs: shows its events, and answers its question. */
import type { Delegator } from "../../client/delegator.ts";
import type { DelegationEvent } from "../../schema/event.ts";
import { TERMINAL_EVENT_TYPES } from "../../schema/event.ts";
import type { CliHost } from "../host.ts";
import { answerByPrompt } from "../input/prompt.ts";
import { wordsOf } from "../show/story.ts";
import type { Shown } from "./agent.ts";

/** Prints a step with its number, and under it the command; or, without a command, a line under the last step. */
export type Say = (text: string, command?: string) => Promise<void>;

interface TourOptions {
  readonly host: CliHost;
  readonly delegator: Delegator;
  readonly id: string;
  readonly shown: Shown;
  readonly say: Say;
  /** The person at the terminal answers the question. */
  readonly isAsked: boolean;
  /** --yes was given. */
  readonly isForced: boolean;
}

export class Tour {
  readonly #options: TourOptions;
  /** Aborts when the question is answered, here or elsewhere. */
  readonly #answered = new AbortController();
  #progress = 0;

  constructor(options: TourOptions) {
    this.#options = options;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { delegator, id, say } = this.#options;
    await say("Watch it.", `errand watch ${id}`);
    const failed = new AbortController();
    const stop = AbortSignal.any([signal, failed.signal]);
    let answering: Promise<void> = Promise.resolve();
    const startedAt = Date.now();
    try {
      for await (const event of delegator.watch(id, { after: "0", signal: stop })) {
        if (event.type === "RESET" || event.type === "DELEGATION_SNAPSHOT") continue;
        if (event.status === "interrupted") {
          // Meanwhile somebody else may answer, which is the next event.
          answering = this.#answer(signal).catch((error: unknown) => failed.abort(error));
        } else await this.#show(event, Date.now() - startedAt);
      }
    } finally {
      this.#answered.abort();
      await answering;
    }
  }

  async #show(event: DelegationEvent, sinceStartMs: number): Promise<void> {
    const { say, shown } = this.#options;
    const words = wordsOf(event, sinceStartMs);
    if (event.type === "DELEGATION_SENT") return;
    if (TERMINAL_EVENT_TYPES.includes(event.type)) return say(`It ends: ${words}.`);
    if (event.status === "answered") this.#answered.abort();
    await say(words);
    if (event.status !== "progress") return;
    this.#progress += 1;
    shown.set(this.#progress);
  }

  async #answer(signal: AbortSignal): Promise<void> {
    const { host, delegator, id, say, isAsked, isForced } = this.#options;
    const { interrupt } = await delegator.get(id, { signal });
    if (interrupt === null) return;
    await say("It asks for your approval, and waits without holding a worker.", `errand approve ${id}`);
    if (!isAsked) {
      await say(
        isForced ? "approved because of --yes" : "approved by itself, because there is no terminal to ask on",
      );
      await delegator.approve(id, { interruptId: interrupt.id, signal });
      return;
    }
    const closed = this.#answered.signal;
    try {
      await answerByPrompt(
        host,
        interrupt,
        (answer) => delegator.answer(id, interrupt.id, answer, { signal }),
        { signal: AbortSignal.any([signal, closed]) },
      );
    } catch (error) {
      if (closed.aborted || signal.aborted) return;
      throw error;
    }
  }
}
