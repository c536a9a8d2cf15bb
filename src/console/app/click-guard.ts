/**
 * Ignores a click on a control that came to its place less than half a second ago without the reader's doing: the reader
 * meant what was there before. Keys are not concerned, because the focus moves with its control. The second half of a
 * double click does not press what the first one brought.
 */
import { controlOf, forgetPlaces, isSurprise, look } from "./control-places.ts";

const LOOK_MS = 100;
/** While the pointer moves, the page is looked at more often. */
const MOVE_MS = 30;
/** In which the page may still react to what the reader did. */
const OWN_FRAMES = 3;
/** In pixels: a hand that rests moves less. */
const REST = 3;
const NOTE_MS = 2_500;
/** A page scrolls on for a while after the wheel or the finger. */
const SCROLL_MS = 1_000;
const SCROLLING = ["wheel", "touchmove"];
/** What the reader does that may move controls. A window of another size moves them under a pointer that rests. */
const DOINGS = ["keydown", "input", "change", "toggle", "hashchange", ...SCROLLING];

export function guardClicks(): () => void {
  const stop = new AbortController();
  const passive = { capture: true, passive: true, signal: stop.signal };
  let ownFrames = 0;
  let pointer = { x: -1, y: -1, since: 0 };
  let pressed: { readonly control: Element | null; readonly isSurprise: boolean } | undefined;
  let clicked: Element | null = null;
  let scrollsUntil = 0;

  let lookedAt = 0;
  const lookAround = () => {
    lookedAt = performance.now();
    look(ownFrames > 0);
  };
  const onFrame = () => {
    ownFrames -= 1;
    if (ownFrames > 0) requestAnimationFrame(onFrame);
    else look(true);
  };
  const excuse = (event?: Event) => {
    const isScroll = event !== undefined && SCROLLING.includes(event.type);
    if (isScroll) scrollsUntil = performance.now() + SCROLL_MS;
    if (ownFrames === 0) {
      // The page may have scrolled before the event of the wheel or the finger arrives.
      if (!isScroll) lookAround();
      requestAnimationFrame(onFrame);
    }
    ownFrames = OWN_FRAMES;
  };
  const scroll = () => {
    if (performance.now() < scrollsUntil) look(true);
  };
  const follow = ({ clientX: x, clientY: y, buttons, type }: PointerEvent) => {
    const isRest = Math.abs(x - pointer.x) < REST && Math.abs(y - pointer.y) < REST;
    // What moved until now did so before the pointer came.
    if (!isRest && performance.now() - lookedAt > MOVE_MS) lookAround();
    if (!isRest) pointer = { x, y, since: performance.now() };
    // It drags something: a scrollbar, the corner of a field.
    if (buttons > 0 && type === "pointermove") excuse();
  };
  const press = (event: PointerEvent) => {
    follow(event);
    lookAround();
    const control = controlOf(event.target);
    const { clientX: x, clientY: y } = event;
    // A finger is nowhere before it presses: it was aimed before it came.
    const since = event.pointerType === "touch" ? 0 : pointer.since;
    pressed = { control, isSurprise: control !== null && isSurprise(control, x, y, since) };
  };
  const click = (event: MouseEvent) => {
    const control = controlOf(event.target);
    // A key or the page itself.
    if (!event.isTrusted || event.detail === 0) return excuse();
    const isEcho = event.detail > 1 && control !== clicked;
    const isMoved = control !== null && pressed?.control === control && pressed.isSurprise;
    clicked = control;
    if (!isEcho && !isMoved) return excuse();
    event.preventDefault();
    event.stopImmediatePropagation();
    if (isMoved) say(event);
  };

  forgetPlaces();
  look(false);
  const timer = setInterval(lookAround, LOOK_MS);
  for (const type of DOINGS) addEventListener(type, excuse, passive);
  addEventListener("scroll", scroll, passive);
  addEventListener("pointermove", follow, passive);
  addEventListener("pointerdown", press, passive);
  addEventListener("click", click, { capture: true, signal: stop.signal });
  return () => {
    clearInterval(timer);
    stop.abort();
  };
}

/** Says it beside the pointer; in a dialog, because all else is behind it. */
function say({ target, clientX, clientY }: MouseEvent): void {
  const note = document.createElement("p");
  note.className = "moved";
  note.setAttribute("role", "alert");
  note.textContent = "It moved. Look again, then press.";
  note.style.left = `${Math.max(8, Math.min(clientX - 20, innerWidth - 232))}px`;
  note.style.top = `${Math.min(clientY + 20, innerHeight - 48)}px`;
  document.querySelector("body > .moved, dialog > .moved")?.remove();
  const dialog = target instanceof Element ? target.closest("dialog") : null;
  (dialog ?? document.body).append(note);
  setTimeout(() => note.remove(), NOTE_MS);
}
