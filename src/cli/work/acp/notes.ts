/**
 * What the worker remembers of a delegation that stopped for a question, in a file beside the conversation's id: what was
 * asked under which request id, and how many follow-ups the agent has got. Limit: of the latest delegations of a
 * conversation only.
 */
import * as z from "zod";
import type { KeptText } from "../../kept-text.ts";

const DELEGATIONS_MAX = 32;
const ASKED_MAX = 200;

const noteSchema = z.object({
  request_id: z.string(),
  digest: z.string(),
  title: z.string(),
  /** The call that waits in the conversation: it is asked for again without a prompt. */
  call: z.string().optional(),
  /** Its answer was used, so it is no news for the agent. */
  used: z.boolean(),
  /** It was asked before the turn ended or in another conversation, so its answer serves no call any more. */
  over: z.boolean().default(false),
});
export type Note = z.infer<typeof noteSchema>;
const ownSchema = z.object({
  id: z.string(),
  session: z.string(),
  follow_ups: z.number(),
  asked: z.array(noteSchema),
});
const fileSchema = z.object({ delegations: z.array(ownSchema) });

export class Notes {
  readonly #kept: KeptText;
  readonly #id: string;
  #others: readonly z.infer<typeof ownSchema>[] = [];
  #asked: readonly Note[] = [];
  #followUps = 0;
  #session: string | undefined;
  #saved: Promise<void> = Promise.resolve();

  static async read(kept: KeptText, id: string): Promise<Notes> {
    const notes = new Notes(kept, id);
    const { delegations } = parsed(await kept.read());
    const own = delegations.find((one) => one.id === id);
    notes.#others = delegations.filter((one) => one !== own).slice(-DELEGATIONS_MAX);
    notes.#session = own?.session;
    notes.#asked = own?.asked ?? [];
    notes.#followUps = own?.follow_ups ?? 0;
    return notes;
  }

  private constructor(kept: KeptText, id: string) {
    this.#kept = kept;
    this.#id = id;
  }

  get asked(): readonly Note[] {
    return this.#asked.filter(({ over }) => !over);
  }

  /** Whether a call that was allowed before may have run, by the requests that were not denied. */
  mayHaveRun(digest: string, allowed: readonly string[]): boolean {
    const noteOf = (requestId: string) => this.#asked.find(({ request_id }) => request_id === requestId);
    // Nothing is known here of what another machine asked.
    return allowed
      .map(noteOf)
      .some((note) => note === undefined || (note.over && note.used && note.digest === digest));
  }

  /** The follow-ups that the agent has got. */
  get followUps(): number {
    return this.#followUps;
  }

  /** Resolves to whether the delegation had this conversation before. */
  async begin(sessionId: string): Promise<boolean> {
    const isSame = this.#session === sessionId;
    this.#session = sessionId;
    // In another conversation, nobody knows of it any more.
    if (!isSame) await this.finish();
    return isSame;
  }

  /** The program goes on with the same conversation under another id. */
  renamed(sessionId: string): void {
    this.#session = sessionId;
  }

  async add(asked: readonly Omit<Note, "used" | "over">[]): Promise<void> {
    const added = asked.map((one) => ({ ...one, used: false, over: false }));
    this.#asked = [...this.#asked, ...added].slice(-ASKED_MAX);
    await this.#save();
  }

  async markUsed(requestId: string): Promise<void> {
    this.#asked = this.#asked.map((one) => (one.request_id === requestId ? { ...one, used: true } : one));
    await this.#save();
  }

  async gotFollowUps(count: number): Promise<void> {
    if (count === this.#followUps) return;
    this.#followUps = count;
    await this.#save();
  }

  /** The turn has ended, and perhaps its reply gets lost: what was allowed is still known. */
  async finish(): Promise<void> {
    if (this.#asked.length === 0 && this.#followUps === 0) return;
    this.#asked = this.#asked.map((one) => ({ ...one, over: true }));
    this.#followUps = 0;
    await this.#save();
  }

  /** One after the other. */
  #save(): Promise<void> {
    const own = {
      id: this.#id,
      session: this.#session ?? "",
      follow_ups: this.#followUps,
      asked: [...this.#asked],
    };
    return this.#keep(text([...this.#others, own]));
  }

  #keep(content: string): Promise<void> {
    const saved = this.#saved.then(() => this.#kept.keep(content));
    this.#saved = saved.catch(() => undefined);
    return saved;
  }
}

const text = (delegations: readonly z.infer<typeof ownSchema>[]): string => JSON.stringify({ delegations });

function parsed(kept = ""): z.infer<typeof fileSchema> {
  try {
    return fileSchema.parse(JSON.parse(kept));
  } catch {
    return { delegations: [] };
  }
}
