/** The interactive inbox: which page is open, what the keys do, and the answers on their way to the broker. */
import { Delegator } from "../../client/delegator.ts";
import { ErrandApiError } from "../../client/errors.ts";
import type { ConnectionOptions } from "../../client/http.ts";
import type { Delegation } from "../../schema/delegation.ts";
import { Counted } from "../counted.ts";
import type { CliHost } from "../host.ts";
import { shortIds } from "../input/short-id.ts";
import type { Frame, Size, View } from "../screen/full-screen.ts";
import type { Key } from "../screen/keys.ts";
import { Link } from "../screen/link.ts";
import { Scroll } from "../screen/scroll.ts";
import { painter } from "../show/output.ts";
import { whyDecisionIsNotEnough } from "../show/questions.ts";
import { sentText } from "../show/votes.ts";
import { AnswerForm, type Mode } from "./answer-form.ts";
import { DetailsPage } from "./details-page.ts";
import { isQuestion, type Question } from "./entry.ts";
import { listFrame } from "./list-frame.ts";
import { LiveInbox } from "./live-inbox.ts";
import { questionFrame, questionLines } from "./question-frame.ts";
import type { Scope } from "./read.ts";
import { Selection } from "./selection.ts";

interface QuestionPage {
  question: Question;
  /** The question for a screen of this width. */
  lines: { readonly columns: number; readonly text: readonly string[] } | undefined;
  readonly scroll: Scroll;
  form: AnswerForm | undefined;
}

const PAST: Readonly<Record<Mode, string>> = {
  answer: "answered",
  approve: "approved",
  deny: "denied",
  edit: "approved, with other arguments,",
  agree: "approved, as others did,",
};
const MODES: Readonly<Record<string, Mode>> = { a: "approve", d: "deny", r: "answer", e: "edit", y: "agree" };
const APPROVING: ReadonlySet<Mode> = new Set(["approve", "edit", "agree"]);
const LOST = "The selected entry is gone or has changed. Press an arrow key or Enter.";
/** What was read of the agent may be old, so that the broker decides. */
const NOT_COUNTED = "Your approval may not count: the broker decides. To deny it: Esc, d.";
/** How often it is read again whose approvals count. */
const VOTES_EVERY_MS = 15_000;
const AWAY = "The broker is unavailable; retrying.";

export class InboxView implements View {
  readonly #host: CliHost;
  readonly #link: Link;
  readonly #live: LiveInbox;
  readonly #scope: Omit<Scope, "counted">;
  /** In milliseconds since 1970, by the broker's clock. */
  readonly #now: () => number;
  /** Forms with their text, by question and mode. */
  readonly #forms = new Map<string, AnswerForm>();
  readonly #selection = new Selection();
  #page: QuestionPage | undefined;
  #details: DetailsPage | undefined;
  #status = "";
  #size: Size = { columns: 80, rows: 24 };
  #redraw: () => void = () => undefined;
  #fail: (error: unknown) => void = () => undefined;
  #signal: AbortSignal | undefined;

  constructor(
    host: CliHost,
    connection: ConnectionOptions,
    scope: Omit<Scope, "counted">,
    now: () => number,
  ) {
    const changed = () => this.#redraw();
    this.#host = host;
    this.#link = new Link(connection, changed);
    const counted = new Counted(this.#link.brief, scope.principal, now);
    this.#live = new LiveInbox(this.#link.connection, { ...scope, counted }, changed);
    this.#scope = scope;
    this.#now = now;
  }

  async run(redraw: () => void, signal: AbortSignal): Promise<void> {
    this.#redraw = redraw;
    this.#signal = signal;
    const failed = new Promise<never>((_, reject) => {
      this.#fail = reject;
    });
    await Promise.race([this.#live.run(signal), failed]);
  }

  draw(size: Size): Frame {
    this.#size = size;
    const paint = painter(this.#host, "stdout");
    const status = this.#link.isAway ? AWAY : this.#status;
    const now = this.#now();
    this.#live.markVotesStale(VOTES_EVERY_MS);
    if (this.#details) return this.#details.draw(size, paint, status);
    if (this.#page) {
      const { id, interrupt } = this.#page.question;
      const entry = this.#live.entry(id);
      const isOpen = entry?.interrupt?.id === interrupt.id;
      // Others may have approved it meanwhile.
      if (isOpen && isQuestion(entry) && entry.version !== this.#page.question.version) {
        this.#page.question = entry;
        this.#page.lines = undefined;
      }
      const { question, form, scroll } = this.#page;
      const closed = isOpen
        ? undefined
        : (this.#live.whyClosed(interrupt.id) ?? "it was answered or has ended");
      if (this.#page.lines?.columns !== size.columns) {
        const text = questionLines(question, size.columns, paint);
        this.#page.lines = { columns: size.columns, text };
      }
      const isInDoubt = entry?.denyOnly === true && form !== undefined && APPROVING.has(form.mode);
      const warned = isOpen && isInDoubt ? [status, NOT_COUNTED].filter(Boolean).join(" ") : status;
      const state = { question, closed, form, scroll, status: warned, now };
      return questionFrame(size, paint, this.#page.lines.text, state);
    }
    const { entries, isLoaded } = this.#live;
    const isSelected = this.#selection.among(entries) !== undefined;
    const { isLost, row } = this.#selection;
    const state = {
      ...{ principal: this.#scope.principal, entries, isSelected, row, isLoaded, now },
      status: status || (isLost && entries.length > 0 ? LOST : ""),
    };
    return listFrame(this.#host, size, state);
  }

  press(key: Key): boolean {
    if (this.#page?.form && !this.#details) {
      this.#pressInForm(this.#page, this.#page.form, key);
      return false;
    }
    this.#status = "";
    if (this.#details) {
      if (this.#details.press(key)) this.#details = undefined;
    } else if (this.#page) this.#pressInQuestion(this.#page, key);
    else return this.#pressInList(key);
    return false;
  }

  #pressInList({ name }: Key): boolean {
    const { entries } = this.#live;
    const page = this.#size.rows - 6;
    const steps: Readonly<Record<string, number>> = {
      ...{ up: -1, k: -1, down: 1, j: 1, pageup: -page, pagedown: page },
      ...{ home: -entries.length, g: -entries.length, end: entries.length, G: entries.length },
    };
    const step = steps[name];
    if (name === "q") return true;
    if (this.#selection.pressLost(name, entries)) return false;
    if (step !== undefined) this.#selection.select(entries, this.#selection.row + step);
    const entry = this.#selection.among(entries);
    if (entry === undefined) return false;
    const mode = MODES[name];
    if (name === "o" || (name === "enter" && !isQuestion(entry))) this.#openDetails(entry.id);
    else if (isQuestion(entry) && (name === "enter" || mode)) {
      this.#page = { question: entry, lines: undefined, scroll: new Scroll(), form: undefined };
      if (mode) this.#openForm(this.#page, mode);
    } else if (mode) this.#status = "This delegation has ended. Press Enter to show it.";
    return false;
  }

  #pressInQuestion(page: QuestionPage, { name }: Key): void {
    const mode = name === "enter" ? "answer" : MODES[name];
    if (name === "q" || name === "escape" || name === "left") this.#page = undefined;
    else if (name === "o") this.#openDetails(page.question.id);
    else if (mode) this.#openForm(page, mode);
    else page.scroll.press(name);
  }

  #pressInForm(page: QuestionPage, form: AnswerForm, key: Key): void {
    if (key.name === "pageup" || key.name === "pagedown") {
      page.scroll.press(key.name);
      return;
    }
    const does = form.press(key);
    if (does === "leave") page.form = undefined;
    const now = this.#live.entry(page.question.id)?.interrupt;
    if (does === "send" && now?.id === form.interrupt.id && !form.isUnchanged(now)) return;
    if (does === "send") this.#send(page, form);
  }

  #openForm(page: QuestionPage, mode: Mode): void {
    const { interrupt } = page.question;
    const [request] = interrupt.requests;
    if (mode === "edit" && request?.edit !== true) {
      this.#status = "The arguments cannot be edited.";
      return;
    }
    if (mode === "agree" && !interrupt.votes?.given.length) {
      this.#status = "Nobody has approved it yet: press a to approve it.";
      return;
    }
    const why = mode === "answer" || mode === "agree" ? undefined : this.#whyNot(mode, page.question);
    if (why !== undefined) {
      this.#status = `It ${why}: press r to answer.`;
      return;
    }
    if (APPROVING.has(mode)) this.#live.markVotesStale();
    const name = `${mode} ${interrupt.id}`;
    page.form = this.#forms.get(name) ?? new AnswerForm(interrupt, mode, this.#scope.principal);
    this.#forms.set(name, page.form);
  }

  #whyNot(mode: Exclude<Mode, "answer" | "agree">, { interrupt }: Question): string | undefined {
    return whyDecisionIsNotEnough(mode === "deny" ? "deny" : "approve", interrupt, mode === "edit");
  }

  #openDetails(id: string): void {
    this.#details = new DetailsPage(this.#link.brief, id, this.#redraw, this.#signal);
  }

  #send(page: QuestionPage, form: AnswerForm): void {
    const { id, interrupt } = page.question;
    form.isSending = true;
    const sending = new Delegator(this.#link.brief).answer(id, interrupt.id, form.answer(), {
      signal: this.#signal,
    });
    sending
      .then(
        (delegation) => this.#sent(page, form, delegation),
        (error) => {
          form.refused(error, id);
          if (error instanceof ErrandApiError && error.status > 0) this.#live.markStale(id);
        },
      )
      .then(this.#redraw)
      .catch((error) => this.#fail(error));
  }

  #sent(page: QuestionPage, form: AnswerForm, delegation: Delegation): void {
    this.#selection.among(this.#live.entries);
    this.#live.apply(delegation);
    // Selects the entry that has moved into its place.
    if (this.#page === page) this.#selection.select(this.#live.entries, this.#selection.row);
    this.#forms.delete(`${form.mode} ${form.interrupt.id}`);
    const id = shortIds([delegation.id]).get(delegation.id) ?? delegation.id;
    this.#status = sentText(PAST[form.mode], { ...delegation, id }, form.interrupt.id);
    if (this.#page === page) this.#page = undefined;
  }
}
