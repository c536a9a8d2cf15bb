/**
 * Links that sign in (`#code=…`, each works once). Anybody can make one, so a link never replaces a session by itself:
 * while somebody is signed in, the page asks.
 */
import { effect, signal } from "@preact/signals";
import type { NewSession } from "../../schema/session.ts";
import { connect } from "../data/connection.ts";
import { enter, isRefused, reasonOf, revoke, session, stayOut, unfinished } from "./session.ts";

/** A link that was opened while somebody is signed in. */
export interface OpenedLink {
  /** The session of the link, for somebody else; null: the link did not work. */
  readonly found: NewSession | null;
  /** Why it did not work. */
  readonly because: string | null;
}
export const openedLink = signal<OpenedLink | null>(null);

const CODE_USED = "This link was used already, or is older than ten minutes.";

let release = (): void => undefined;

/** Signs in by the code, or asks. Nothing changes if the link is for the principal that is signed in. */
export async function openLink(code: string): Promise<void> {
  let link: OpenedLink;
  try {
    const found = await connect().admin.createSession({ code });
    if (!session.peek()) return await enter(found);
    if (session.peek()?.principal === found.principal) return await revoke(found);
    link = { found, because: null };
  } catch (error) {
    const because = isRefused(error) ? CODE_USED : reasonOf(error);
    if (!session.peek()) return stayOut(isRefused(error) ? `${because} Ask for another link.` : because);
    link = { found: null, because };
  }
  await declineLink();
  const releases = [...unfinished].map(({ hold }) => hold());
  release = () => {
    for (const one of releases) one();
  };
  openedLink.value = link;
}

/** Stays with the present session. */
export async function declineLink(): Promise<void> {
  const found = openedLink.peek()?.found;
  openedLink.value = null;
  release();
  release = () => undefined;
  if (found) await revoke(found);
}

/** Signs in as the principal of the link. Answers that wait are dropped; one that is being sent is finished first. */
export async function acceptLink(): Promise<void> {
  const found = openedLink.peek()?.found;
  if (!found) return declineLink();
  await Promise.all([...unfinished].map(({ settle }) => settle()));
  await enter(found);
  release = () => undefined;
  openedLink.value = null;
}

addEventListener("pagehide", () => void declineLink());
// The question named somebody who is no longer signed in.
effect(() => {
  if (session.value === null) void declineLink();
});
