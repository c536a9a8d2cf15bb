/** The session of the reader, and the connection to the broker with it. */
import { signal } from "@preact/signals";
import * as z from "zod";
import { ErrandApiError } from "../../client/errors.ts";
import type { Principal } from "../../schema/values.ts";
import { type Connection, connect } from "../data/connection.ts";

export interface Session {
  readonly id: string;
  readonly principal: Principal;
  readonly connection: Connection;
  /** The broker's clock minus this machine's. */
  readonly clockOffsetMs: number;
}

/** Null: nobody is signed in. Undefined: a stored session or a code is being checked. */
export const session = signal<Session | null | undefined>(undefined);
/** Why the last session ended; null if the reader signed out. */
export const endedBecause = signal<string | null>(null);

/** A header takes no other characters; the broker would not even get the request. */
const TOKEN = /^[!-~]+$/;

/**
 * Exchanges a token for a session, so that the token itself is stored nowhere. Returns whether the broker knows the token;
 * throws its other refusals.
 */
export async function signIn(token: string): Promise<boolean> {
  if (!TOKEN.test(token)) return false;
  try {
    await enter(await connect(token).admin.createSession());
    return true;
  } catch (error) {
    if (isRefused(error)) return false;
    throw error;
  }
}

/** Signs in with the stored session. */
export async function resumeSession(): Promise<void> {
  const stored = storedSession.read();
  try {
    if (stored !== null) await enter(stored);
  } catch (error) {
    if (isRefused(error)) endSession(stored, REVOKED);
    else stayOut(reasonOf(error));
  }
}

/** Shows the sign-in, and why. */
export function stayOut(because: string | null): void {
  endedBecause.value = because;
  session.value = null;
}

export const reasonOf = (error: unknown): string =>
  error instanceof ErrandApiError && error.retryable
    ? AWAY
    : error instanceof Error
      ? error.message
      : String(error);

/** A browser has one session: the one that it replaces ends at the broker, too. */
export async function enter(entered: StoredSession): Promise<void> {
  const connection = connect(entered.token);
  const { principal, now } = await connection.admin.status();
  const replaced = storedSession.read();
  storedSession.write(entered);
  endedBecause.value = null;
  session.value = { id: entered.id, principal, connection, clockOffsetMs: Date.parse(now) - Date.now() };
  if (replaced && replaced.id !== entered.id) await revoke(replaced);
}

/** If the broker is away, the session ends by itself. */
export const revoke = ({ id, token }: StoredSession): Promise<void> =>
  connect(token)
    .admin.revokeSession(id)
    .catch(() => undefined);

const REVOKED = "Your session has ended: it or its token was revoked, or its 12 hours are over.";
const REPLACED =
  "Another tab of this browser signed in, which ended this session. Reload the page to go on as there.";
const AWAY = "The broker does not answer. Reload the page to try again.";
export const isRefused = (error: unknown): boolean =>
  error instanceof ErrandApiError && error.code === "unauthenticated";

/** Call it for every failed call. Ends the session if the broker has refused it; ignores a late error of an earlier one. */
export function checkSession(error: unknown): void {
  if (isRefused(error) && session.value?.connection.isRefused()) endSession(session.value, REVOKED);
}

/** Whether the connection is that of the present session. */
export const isCurrent = (connection: Connection): boolean => session.peek()?.connection === connection;

/** Answers that wait to be sent. */
export interface Unfinished {
  /** Sends them now. */
  readonly finish: () => Promise<unknown>;
  /** Resolves when none is being sent; sends no other. */
  readonly settle: () => Promise<unknown>;
  /** Sends none until the returned function is called; then they wait anew. */
  readonly hold: () => () => void;
}
export const unfinished = new Set<Unfinished>();

/** Where this tab keeps what its reader typed. */
export const DRAFTS = "errand-drafts";

export function endSession(
  ended: Pick<Session, "id"> | null | undefined,
  because: string | null = null,
): void {
  if (ended) storedSession.clear(ended.id);
  sessionStorage.removeItem(DRAFTS);
  endedBecause.value = because;
  session.value = null;
}

const KEY = "errand-session";
const storedSchema = z.object({ id: z.string(), token: z.string() });
type StoredSession = z.infer<typeof storedSchema>;

/** Where the session is kept between reloads, for all tabs of this browser. */
const storedSession = {
  read: (): StoredSession | null => parse(localStorage.getItem(KEY)),
  write: ({ id, token }: StoredSession): void => localStorage.setItem(KEY, JSON.stringify({ id, token })),
  /** Deletes this session, but not a newer one that another tab has stored. */
  clear(id: string): void {
    if (storedSession.read()?.id === id) localStorage.removeItem(KEY);
  },
  /**
   * Calls back with the id of the session when another tab signs out, or signs in with another session. A page that was just
   * loaded may also hear of what its tab wrote before.
   */
  onReplaced: (listener: (id: string | undefined, isCleared: boolean) => void): void =>
    addEventListener("storage", ({ key, oldValue, newValue }) => {
      if (key === KEY) listener(parse(oldValue)?.id, newValue === null);
    }),
};

function parse(text: string | null): StoredSession | null {
  try {
    return storedSchema.parse(JSON.parse(text ?? ""));
  } catch {
    return null;
  }
}

/** Whose drafts this tab keeps. */
function ownerOfDrafts(): string | undefined {
  try {
    return z.object({ session: z.string() }).parse(JSON.parse(sessionStorage.getItem(DRAFTS) ?? "")).session;
  } catch {
    return undefined;
  }
}

storedSession.onReplaced((id, isCleared) => {
  // Also while this tab waits for the broker, and shows nobody as signed in.
  if (storedSession.read()?.id !== ownerOfDrafts()) sessionStorage.removeItem(DRAFTS);
  if (session.value?.id === id) stayOut(isCleared ? null : REPLACED);
});
