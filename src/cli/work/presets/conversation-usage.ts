/**
 * Usage that a program reports as the total of its conversation: a run has used the difference to the total that the
 * worker remembers. Limit: a run that another worker made in the same conversation counts for the next run here.
 */
import * as z from "zod";
import { AMOUNTS, type Amounts, type UsageReport, usageSumSchema } from "../../../schema/usage.ts";
import type { KeptText } from "../../kept-text.ts";
import { oneLine } from "../../show/output.ts";

const keptSchema = z.object({ session: z.string(), total: usageSumSchema.omit({ complete: true }) });

export class ConversationUsage {
  readonly #kept: KeptText;
  #before: z.infer<typeof keptSchema> | undefined;
  #total: UsageReport | undefined;
  /** Where this run begins; undefined before the first total. */
  #start: Amounts | undefined;

  static async read(kept: KeptText): Promise<ConversationUsage> {
    return new ConversationUsage(kept, parsed(await kept.read()));
  }

  private constructor(kept: KeptText, before: z.infer<typeof keptSchema> | undefined) {
    this.#kept = kept;
    this.#before = before;
  }

  /** What this run has used, by the conversation's new total. */
  since(session: string, total: UsageReport): UsageReport {
    this.#start ??= this.#startOf(session, total);
    this.#total = { ...this.#total, ...total };
    const used: { -readonly [A in keyof Amounts]: number } = {};
    for (const name of AMOUNTS) {
      const [now, before = 0] = [total[name], this.#start[name]];
      if (now !== undefined) used[name] = Number(Math.max(0, now - before).toPrecision(15));
    }
    return { ...total, ...used };
  }

  /** Remembers the total for the next run. */
  async keep(session: string): Promise<void> {
    if (this.#total === undefined) return;
    const { model: _model, ...total } = this.#total;
    await this.#kept.keep(JSON.stringify({ session, total: { ...this.#knownOf(session), ...total } }));
  }

  #knownOf(session: string) {
    return this.#before?.session === session ? this.#before.total : undefined;
  }

  /** A program that begins to count again reports less than before. */
  #startOf(session: string, total: UsageReport): Amounts {
    const known = this.#knownOf(session);
    if (known === undefined || known.currency !== total.currency) return {};
    const hasRestarted = AMOUNTS.some(
      (name) => (total[name] ?? Number.POSITIVE_INFINITY) < (known[name] ?? 0),
    );
    return hasRestarted ? {} : known;
  }
}

export const usageNotKept = (error: unknown): string =>
  `cannot store what the conversation has used, so the next delegation of its context reports too much: ${oneLine(String(error))}`;

function parsed(text = ""): z.infer<typeof keptSchema> | undefined {
  try {
    return keptSchema.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}
