/**
 * The keys of the focused question: Enter opens it, `a` approves, `d` denies, `e` edits the proposed arguments,
 * `r` goes to the field for the answer, and Esc back; `u` takes an answer back; `x` selects it, to decide several at
 * once; and `n` shows the new ones that wait.
 */
import { moveFocus, onKey } from "../app/keys.ts";
import { go, hrefOf } from "../app/route.ts";
import { undo, waitingIds } from "./answers.ts";
import { failures } from "./outcomes.ts";

const SELECT = "input[name=select]";
/** An edit is never taken back by its key: where the form is open, its first field. */
const EDIT = "button[name=edit], .edit :is(input, select, textarea)";
/** In a form, a letter decides nothing. */
const FORMS = ".edit, form";

export function listenForKeys(): () => void {
  addEventListener("keydown", openQuestion);
  addEventListener("keydown", leaveField, { capture: true });
  const stops = [
    onKey("a", (event) => decide(event, "button[name=approve]")),
    onKey("d", (event) => decide(event, "button[name=deny]")),
    onKey("e", (event) => act(event, EDIT)),
    onKey("x", (event) => act(event, SELECT)),
    onKey("r", (event) => act(event, ".request :is(input, select, textarea)")),
    onKey("u", takeBack),
    onKey("n", () => document.querySelector<HTMLElement>(".needs .news button")?.click()),
  ];
  return () => {
    removeEventListener("keydown", openQuestion);
    removeEventListener("keydown", leaveField, { capture: true });
    for (const stop of stops) stop();
  };
}

/** Controls inside the question keep their Enter. */
function openQuestion({ key, target, ctrlKey, metaKey, altKey }: KeyboardEvent): void {
  if (key !== "Enter" || ctrlKey || metaKey || altKey || !(target instanceof HTMLElement)) return;
  if (target.matches("[data-question][data-row]")) go(hrefOf(target.dataset.row ?? ""));
}

/** The question that has the focus, or whose row in the list has it. */
function focusedCard(): HTMLElement | null {
  const row = document.activeElement?.closest<HTMLElement>("[data-asks]");
  if (!row) return document.activeElement?.closest<HTMLElement>("[data-question]") ?? null;
  return document.querySelector<HTMLElement>(`main [data-question="${CSS.escape(row.dataset.asks ?? "")}"]`);
}

/** Takes back the answer to the focused question, or else the latest one that can be. */
function takeBack(): void {
  const id = focusedCard()?.dataset.question ?? "";
  const waiting = waitingIds();
  const last = waiting.includes(id) ? id : waiting.at(-1);
  if (last !== undefined) undo(last);
}

/** Esc leaves a field of a question, which keeps what was typed, and then the question has the focus. */
function leaveField(event: KeyboardEvent): void {
  const { key, target, isComposing } = event;
  if (key !== "Escape" || isComposing || !(target instanceof HTMLElement)) return;
  if (!target.matches("input, textarea, select")) return;
  const card = target.closest<HTMLElement>("[data-question]");
  if (!card) return;
  event.stopImmediatePropagation();
  card.focus();
}

function decide(event: KeyboardEvent, button: string): void {
  if (event.target instanceof Element && event.target.closest(FORMS)) return;
  act(event, button);
}

/** Without a focused question, focuses the first one instead of deciding anything. A key held down acts once. */
function act(event: KeyboardEvent, control: string): void {
  if (event.repeat) return;
  const card = focusedCard();
  if (!card) focusFirst();
  else if (canAnswer(card)) use(card, control);
}

/** Not while the form is still loading, nor when the question is answered: then the form is inert. */
const canAnswer = (card: HTMLElement): boolean =>
  card.querySelector(".request") !== null && !card.querySelector("[inert]");

function use(card: HTMLElement, control: string): void {
  const found = card.querySelector<HTMLElement>(control);
  if (found?.matches(`button, ${SELECT}`)) found.click();
  else if (found) {
    // The field for a comment is closed at first.
    found.closest("details")?.setAttribute("open", "");
    found.focus();
  } else if (control !== SELECT) failures.set(card.dataset.question ?? "", new Error(adviceFor(card)));
}

function adviceFor(card: HTMLElement): string {
  if (card.querySelector(".fields")) return "Fill in the form (Tab).";
  if (card.querySelector(".text-answer")) return "Answer in words (r).";
  if (card.querySelector("[name=approve]")) return "Approve (a) or deny (d).";
  return card.querySelector("[name=deny]") ? "You can only deny it (d)." : "Choose an option (Tab).";
}

function focusFirst(): void {
  const cards = [...document.querySelectorAll<HTMLElement>("[data-question]")];
  const first = cards.find((card) => card.offsetParent !== null);
  if (first) first.focus();
  else moveFocus(1);
}
