/**
 * Answers an agent's permission requests and elicitations: from answers that a person has given, each once, or by a new
 * question. Several that are open at the same time become requests of one question.
 */
import { randomUUID } from "node:crypto";
import type { Answered, Question } from "../../../client/questions.ts";
import type { Approvals } from "./approvals.ts";
import type { Asked, Settled } from "./asked.ts";
import type { Notes } from "./notes.ts";

/** The broker's limit of requests in a question. */
const REQUESTS_MAX = 32;
/** Leaves room in a body of the broker. The agent asks again for what is left out. */
const BYTES_MAX = 512 * 1024;

interface Open {
  readonly requestId: string;
  readonly title: string;
  readonly digest: string;
  readonly call: string | undefined;
  readonly question: Question;
  readonly answer: (answered: Answered) => void;
  readonly cancel: () => void;
}

export interface DeskSetup {
  readonly approvals: Approvals;
  readonly notes: Notes;
  /** The answers that the delegation has. */
  readonly answers: ReadonlyMap<string, Answered>;
  /** Resolves when requests that belong together have come. */
  readonly collect: () => Promise<void>;
  /** Called before a question is asked, which may end the lease. */
  readonly beforeAsking: () => Promise<void>;
  /** Stops the agent's time limits while a person is asked. */
  readonly whileAsked: <T>(answered: Promise<T>) => Promise<T>;
  /** For people who watch. */
  readonly note: (text: string) => void;
}

export class Desk {
  readonly #setup: DeskSetup;
  readonly #usedNow = new Set<string>();
  /** The digests of what an earlier run was allowed to do, and may have done. */
  readonly #mayHaveRun = new Set<string>();
  /** Not asked yet. */
  #open: Open[] = [];
  readonly #unanswered = new Set<Open>();
  #asking: Promise<void> | undefined;
  #said: string[] = [];
  #hasDenied = false;
  #end: { readonly resolve: (parked: "parked") => void; readonly reject: (error: unknown) => void };
  /** Resolves when a question has ended the lease. Rejects when it cannot be asked. */
  readonly parked: Promise<"parked">;

  constructor(setup: DeskSetup) {
    this.#setup = setup;
    const { promise, ...end } = deferred<"parked">();
    this.parked = promise;
    this.#end = end;
    this.parked.catch(() => undefined);
  }

  /** Never resolves if the question ends the lease: the agent's process is ended then. */
  async handle<R>(asked: Asked<R>): Promise<R> {
    const given = await this.given(asked);
    return given === undefined ? this.#ask(asked) : given.response;
  }

  /** By an answer that a person gave before. Undefined: it must be asked. */
  async given<R>(asked: Asked<R>): Promise<Settled<R> | undefined> {
    const { note } = this.#setup;
    for (const [requestId, answered] of this.#answersTo(asked.digest)) {
      this.#usedNow.add(requestId);
      if ((await this.#use(answered)) === "first") {
        const settled = asked.settle(answered);
        this.#hasDenied ||= settled.isDenied;
        if (settled.shown !== undefined) note(settled.shown);
        return settled;
      }
      if (answered.decision !== "deny") this.#mayHaveRun.add(asked.digest);
    }
    return undefined;
  }

  /** The run ends with this error. */
  fail(error: unknown): void {
    this.#end.reject(error);
  }

  /** Responds to all that is open: the turn is canceled. */
  cancelAll(): void {
    this.#open = [];
    for (const { cancel } of this.#unanswered) cancel();
    this.#unanswered.clear();
  }

  /** Tells the agent more than a response can say. It was denied what it asked for. */
  say(text: string): void {
    this.#said.push(text);
    this.#hasDenied = true;
  }

  /** What the agent must be told besides the responses, and whether something was denied; since the last call. */
  takeSaid(): { readonly said: readonly string[]; readonly hasDenied: boolean } {
    const taken = { said: this.#said, hasDenied: this.#hasDenied };
    this.#said = [];
    this.#hasDenied = false;
    return taken;
  }

  *#answersTo(digest: string): Generator<[requestId: string, answered: Answered]> {
    const { notes, answers } = this.#setup;
    for (const note of notes.asked) {
      const answered = answers.get(note.request_id);
      if (note.digest === digest && answered && !this.#usedNow.has(note.request_id))
        yield [note.request_id, answered];
    }
  }

  #ask<R>(asked: Asked<R>): Promise<R> {
    const { question, title, digest, call } = asked;
    const { notes, answers } = this.#setup;
    // An option of the agent that a person picked, such as "always allow", is no decision.
    const allowed = [...answers.values()].filter(({ decision }) => decision !== "deny");
    const before = allowed.map(({ requestId }) => requestId);
    const mayHaveRun = this.#mayHaveRun.delete(digest) || notes.mayHaveRun(digest, before);
    return new Promise((resolve) => {
      const open = { title, digest, call, requestId: newId(), question };
      this.#add({
        ...(mayHaveRun ? again(open) : open),
        answer: (answered) => resolve(this.#taken(asked.settle(answered))),
        cancel: () => resolve(asked.canceled),
      });
      this.#asking ??= this.#askAll().catch((error: unknown) => this.#end.reject(error));
    });
  }

  #add(open: Open): void {
    this.#open.push(open);
    this.#unanswered.add(open);
  }

  #taken<R>({ response, say, shown, isDenied }: Settled<R>): R {
    if (say !== undefined) this.#said.push(say);
    if (shown !== undefined) this.#setup.note(shown);
    this.#hasDenied ||= isDenied;
    return response;
  }

  async #use(answered: Answered): Promise<"first" | "again"> {
    const used = await this.#setup.approvals.use(answered);
    await this.#setup.notes.markUsed(answered.requestId);
    return used;
  }

  async #askAll(): Promise<void> {
    const { approvals, notes, collect, beforeAsking, whileAsked } = this.#setup;
    await collect();
    await beforeAsking();
    const asked = fitting(this.#open);
    this.#open = this.#open.filter((one) => !asked.includes(one));
    await notes.add(
      asked.map(({ requestId, digest, title, call }) => ({ request_id: requestId, digest, title, call })),
    );
    const requests = asked.map(({ question, requestId }) => ({ ...question, requestId }));
    const answers = requests.length === 0 ? [] : await whileAsked(approvals.ask(requests));
    if (answers === "parked") return this.#end.resolve("parked");
    for (const one of asked) {
      const answered = answers.find((answer) => answer.requestId === one.requestId);
      this.#usedNow.add(one.requestId);
      this.#unanswered.delete(one);
      if (answered === undefined) one.cancel();
      else if ((await this.#use(answered)) === "first") one.answer(answered);
      else this.#add(again(one));
    }
    this.#asking = undefined;
    if (this.#open.length > 0)
      this.#asking = this.#askAll().catch((error: unknown) => this.#end.reject(error));
  }
}

const MAY_HAVE_RUN =
  "An earlier run of this task may have been allowed the same, and its result is not known: the call may already have run.";

const newId = (): string => `acp_${randomUUID()}`;

/** Another request, because another call has used the answer to the first one. */
const again = <T extends Pick<Open, "question">>(one: T) => ({
  ...one,
  requestId: newId(),
  question: { ...one.question, text: `${MAY_HAVE_RUN}\n\n${one.question.text ?? ""}` },
});

function fitting(open: readonly Open[]): Open[] {
  let bytes = 0;
  return open.slice(0, REQUESTS_MAX).filter(({ question }) => {
    bytes += Buffer.byteLength(JSON.stringify(question));
    return bytes <= BYTES_MAX;
  });
}

function deferred<T>() {
  let resolve: (value: T) => void = () => undefined;
  let reject: (error: unknown) => void = () => undefined;
  const promise = new Promise<T>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  return { promise, resolve, reject };
}
