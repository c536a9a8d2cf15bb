/** Where the session is kept between reloads, for all tabs of this browser. */
import * as z from "zod";

const KEY = "errand-session";
const storedSchema = z.object({ id: z.string(), token: z.string() });
export type StoredSession = z.infer<typeof storedSchema>;

export const storedSession = {
  read: (): StoredSession | null => parse(localStorage.getItem(KEY)),
  write: ({ id, token }: StoredSession): void => localStorage.setItem(KEY, JSON.stringify({ id, token })),
  /** Deletes this session, but not a newer one that another tab has stored. */
  clear(id: string): void {
    if (storedSession.read()?.id === id) localStorage.removeItem(KEY);
  },
  /** Calls back with the id of the session when another tab signs out, or signs in with another session. */
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
