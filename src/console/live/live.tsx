import { lazyFrom } from "../app/lazy-from.tsx";
import { haveReadAgents } from "../data/agents.ts";
import { inView, isLoaded } from "../data/delegations.ts";
import { count } from "../ui/words.ts";

const READING = <p class="loading">Reading what is live …</p>;
const load = () => import("./parts.tsx");
// It arrives while the page reads what is live.
load().catch(() => undefined);
const Parts = lazyFrom(load, ({ Parts: loaded }) => loaded, READING);
const HeadText = lazyFrom(load, ({ HeadText: loaded }) => loaded, null);

/** What goes on: what needs attention, the agents, and their work. */
export function Live() {
  const total = inView.value.length;
  // The agents come first: those that came later would push down the work, or wait behind a button while the pointer is in it.
  const isReading = !haveReadAgents.value || (!isLoaded.value && total === 0);
  return (
    <section aria-label="Live">
      <h1 id="live-title">
        Live{" "}
        {total > 0 && (
          <small>{isLoaded.value ? <HeadText /> : `${count(total, "delegation")} so far …`}</small>
        )}
      </h1>
      {isReading ? READING : <Parts />}
    </section>
  );
}
