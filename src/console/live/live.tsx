import { lazyFrom } from "../app/lazy-from.tsx";
import { agents } from "../data/agents.ts";
import { inView, isLoaded } from "../data/delegations.ts";
import { count } from "../ui/words.ts";
import { headText } from "./tally.ts";

const READING = <p class="loading">Reading what is live …</p>;
const load = () => import("./parts.tsx");
// It arrives while the page reads what is live.
load().catch(() => undefined);
const Parts = lazyFrom(load, ({ Parts: loaded }) => loaded, READING);

/** What goes on: what needs attention, the agents, and their work. */
export function Live() {
  const total = inView.value.length;
  // The agents come first, so that nothing is pushed down when they arrive.
  const isReading = !isLoaded.value && (total === 0 || agents.value === null);
  return (
    <section aria-label="Live">
      <h1 id="live-title">Live {total > 0 && <small>{headOf(total)}</small>}</h1>
      {isReading ? READING : <Parts />}
    </section>
  );
}

/** `6 delegations: 1 working, 3 asking, 2 queued`. */
const headOf = (total: number): string =>
  isLoaded.value ? headText.value : `${count(total, "delegation")} so far …`;
