/**
 * Chooses the page that reads the events for all pages of a session: the one that holds a lock. A visible page takes the
 * lock from a page that is hidden, does not answer, or has lost the broker: browsers slow hidden pages down, and freeze
 * them.
 */

const ASK_MS = 10_000;
/** How long the leader has to answer. */
const ANSWER_MS = 1_000;

interface Leading {
  readonly locks: LockManager;
  readonly name: string;
  /** Whether the broker answers this page. */
  readonly isConnected: () => boolean;
  /** Reads until the signal aborts. */
  readonly lead: (abort: AbortSignal) => Promise<void>;
  readonly abort: AbortSignal;
}

/** Leads whenever it is this page's turn, until the signal aborts. Rejects with an error of `lead`. */
export async function leadInTurn({ locks, name, isConnected, lead, abort }: Leading): Promise<void> {
  const pages = new BroadcastChannel(`${name} leader`);
  let turn = new AbortController();
  let isLeading = false;
  let takesOver = false;
  let doubt: ReturnType<typeof setTimeout> | undefined;
  const mayLead = () => !document.hidden && isConnected();
  const ask = () => {
    if (isLeading || doubt !== undefined || !mayLead()) return;
    pages.postMessage("ask");
    doubt = setTimeout(() => {
      doubt = undefined;
      if (isLeading || !mayLead()) return;
      takesOver = true;
      turn.abort();
    }, ANSWER_MS);
  };
  pages.onmessage = ({ data }: MessageEvent<"ask" | "here">) => {
    if (data === "here") {
      clearTimeout(doubt);
      doubt = undefined;
    } else if (isLeading && mayLead()) pages.postMessage("here");
  };
  const timer = setInterval(ask, ASK_MS);
  document.addEventListener("visibilitychange", ask);
  const end = () => turn.abort();
  abort.addEventListener("abort", end);
  ask();
  try {
    while (!abort.aborted) {
      turn = new AbortController();
      const { signal } = turn;
      const options: LockOptions = takesOver ? { steal: true } : { signal };
      takesOver = false;
      const reading = locks.request(name, options, async () => {
        if (signal.aborted) return;
        isLeading = true;
        await lead(signal);
      });
      await reading.catch((error: unknown) => {
        // Another page took the lock, or this page is to take it.
        if (!(error instanceof DOMException && error.name === "AbortError")) throw error;
      });
      isLeading = false;
      turn.abort();
    }
  } finally {
    isLeading = false;
    turn.abort();
    clearInterval(timer);
    clearTimeout(doubt);
    document.removeEventListener("visibilitychange", ask);
    abort.removeEventListener("abort", end);
    pages.close();
  }
}
