/** The session of the reader, and the connection to the broker with it. */
import { signal } from "@preact/signals";
import { ErrandApiError } from "../../client/errors.ts";
import type { Principal } from "../../schema/values.ts";
import { type Connection, connect } from "../data/connection.ts";
import { type StoredSession, storedSession } from "./stored-session.ts";

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

/** Signs in by the code in the URL (`#code=…`, works once), at the start or later, or with the stored session. */
export async function resumeSession(code: string | null): Promise<void> {
  const stored = storedSession.read();
  // Somebody may be signed in: finish the work of that session first.
  await finish();
  try {
    if (code !== null) await enter(await connect().admin.createSession({ code }));
    else if (stored !== null) await enter(stored);
    else session.value = null;
  } catch (error) {
    if (code !== null) endedBecause.value = CODE_USED;
    else if (isRefused(error)) return endSession(stored, REVOKED);
    else if (error instanceof ErrandApiError && error.retryable) endedBecause.value = AWAY;
    else endedBecause.value = error instanceof Error ? error.message : String(error);
    session.value = null;
  }
}

async function enter(stored: StoredSession): Promise<void> {
  const connection = connect(stored.token);
  const { principal, now } = await connection.admin.status();
  storedSession.write(stored);
  endedBecause.value = null;
  session.value = { id: stored.id, principal, connection, clockOffsetMs: Date.parse(now) - Date.now() };
}

const REVOKED = "Your session has ended: it or its token was revoked, or its 12 hours are over.";
const AWAY = "The broker does not answer. Reload the page to try again.";
const CODE_USED = "This link was used already, or is older than ten minutes. Sign in with a token.";
const isRefused = (error: unknown): boolean =>
  error instanceof ErrandApiError && error.code === "unauthenticated";

/** Call it for every failed call. Ends the session if the broker has refused it; ignores a late error of an earlier one. */
export function checkSession(error: unknown): void {
  if (isRefused(error) && session.value?.connection.isRefused()) endSession(session.value, REVOKED);
}

/** Whether the connection is that of the present session. */
export const isCurrent = (connection: Connection): boolean => session.peek()?.connection === connection;

/** Work to finish before the session is left, by a sign-out or by a link that signs in. */
export const beforeSignOut = new Set<() => Promise<unknown>>();
const finish = () => Promise.all([...beforeSignOut].map((work) => work()));

export async function signOut(): Promise<void> {
  const left = session.value;
  await finish();
  endSession(left);
  // If the broker is away, the session ends by itself.
  await left?.connection.admin.revokeSession(left.id).catch(() => undefined);
}

function endSession(ended: Pick<Session, "id"> | null | undefined, because: string | null = null): void {
  if (ended) storedSession.clear(ended.id);
  endedBecause.value = because;
  session.value = null;
}

storedSession.onCleared((id) => {
  if (session.value?.id === id) session.value = null;
});
