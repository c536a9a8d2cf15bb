/** Ends the session because its reader wants it. */
import { pushed } from "../push/stored.ts";
import { endSession, session, unfinished } from "./session.ts";

/** What waits is sent first, and this browser is no longer notified. */
export async function signOut(): Promise<void> {
  const left = session.value;
  await Promise.all([...unfinished].map(({ finish }) => finish()));
  // If the broker is away, its calls to the push service find nobody.
  if (pushed.peek()) await (await import("../push/browser.ts")).turnOff().catch(() => undefined);
  endSession(left);
  // If the broker is away, the session ends by itself.
  await left?.connection.admin.revokeSession(left.id).catch(() => undefined);
}
