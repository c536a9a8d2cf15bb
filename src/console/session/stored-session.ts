/** Where the session is kept between reloads, for all tabs of this browser. */
import * as z from "zod";

const KEY = "errand-session";
const storedSchema = z.object({ id: z.string(), token: z.string() });
export type StoredSession = z.infer<typeof storedSchema>;

export const storedSession = {
  read(): StoredSession | null {
    try {
      return storedSchema.parse(JSON.parse(localStorage.getItem(KEY) ?? ""));
    } catch {
      return null;
    }
  },
  write: ({ id, token }: StoredSession): void => localStorage.setItem(KEY, JSON.stringify({ id, token })),
  clear: (): void => localStorage.removeItem(KEY),
  /** Calls back when another tab signs out. */
  onCleared: (listener: () => void): void =>
    addEventListener("storage", ({ key, newValue }) => {
      if (key === KEY && newValue === null) listener();
    }),
};
