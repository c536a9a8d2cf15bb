/** Shows the number of open questions outside the page: in its title, its favicon and, if wanted, a notification. */
import { effect } from "@preact/signals";
import type { ListedDelegation } from "../data/listed.ts";
import { mine } from "../needs/mine.ts";
import { pushed } from "../push/stored.ts";
import { askerOf, taskText } from "../ui/words.ts";
import { wantsNotices } from "./notices.ts";
import { go, hrefOf } from "./route.ts";

export function announceNeeds(): () => void {
  const stops = [
    effect(() => {
      const count = mine.value.length;
      document.title = count > 0 ? `(${count}) Errand` : "Errand";
      void drawIcon(count);
    }),
    effect(() => notify(mine.value)),
  ];
  return () => {
    for (const stop of stops) stop();
    document.title = "Errand";
    void drawIcon(0);
  };
}

let plainIcon: string | undefined;
let drawn = -1;

async function drawIcon(count: number): Promise<void> {
  const link = document.querySelector<HTMLLinkElement>("link[rel=icon]");
  if (!link || count === drawn || (drawn === -1 && count === 0)) return;
  drawn = count;
  plainIcon ??= link.href;
  const icon = count === 0 ? plainIcon : await iconWith(plainIcon, count > 9 ? "9+" : String(count));
  if (drawn === count) link.href = icon;
}

/** The favicons, by their text. There are few, and they are kept, because the browser may load one at any time. */
const icons = new Map<string, string>();

const SIZE = 64;

async function iconWith(icon: string, text: string): Promise<string> {
  const known = icons.get(text);
  if (known !== undefined) return known;
  const image = new Image(SIZE, SIZE);
  image.src = icon;
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: SIZE, height: SIZE });
  const context = canvas.getContext("2d");
  if (!context) return icon;
  context.drawImage(image, 0, 0, SIZE, SIZE);
  context.fillStyle = "#b45309";
  context.beginPath();
  context.arc(44, 20, 20, 0, 2 * Math.PI);
  context.fill();
  context.fillStyle = "#fff";
  context.font = "bold 30px sans-serif";
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(text, 44, 22);
  const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve));
  if (blob === null) return icon;
  icons.set(text, URL.createObjectURL(blob));
  return icons.get(text) ?? icon;
}

/** Questions that need no notification: they were open at the start, or had one. */
const notified = new Set<string>();

function notify(questions: readonly ListedDelegation[]): void {
  // One that the reader approved comes back if others void the approval.
  const open = new Set(questions.map(({ interrupt }) => interrupt?.id));
  for (const id of notified) if (!open.has(id)) notified.delete(id);
  for (const listed of questions) {
    const { interrupt } = listed;
    if (!interrupt || notified.has(interrupt.id)) continue;
    notified.add(interrupt.id);
    if (!wantsNotices.value || !document.hidden || pushed.peek()) continue;
    // The same tag in several tabs shows one notification.
    const notice = new Notification(`${askerOf(listed)} asks`, { body: taskText(listed), tag: interrupt.id });
    notice.onclick = () => {
      focus();
      go(hrefOf(listed.id));
      notice.close();
    };
  }
}
