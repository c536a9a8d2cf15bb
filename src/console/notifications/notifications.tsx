import { useComputed } from "@preact/signals";
import { adopt } from "../app/adopt.ts";
import { now } from "../data/clock.ts";
import { clientOf } from "../push/browser.ts";
import { Empty } from "../ui/empty.tsx";
import { Problem } from "../ui/problem.tsx";
import { useLoaded } from "../ui/use-loaded.ts";
import { Windowed } from "../ui/windowed.tsx";
import { NewSubscription } from "./new-subscription.tsx";
import { styles } from "./notifications.css";
import { SubscriptionRow } from "./subscription-row.tsx";

adopt(styles);

/** How often the list is read again, ms. */
const AGAIN_MS = 10_000;

/** Who is told of what outside the console, by which channels, and how each of them goes. */
export function Notifications() {
  const round = useComputed(() => Math.floor(now.value / AGAIN_MS));
  const read = (_: unknown, signal: AbortSignal) => clientOf().list({ signal });
  const { value, error, reload } = useLoaded("subscriptions", read, round.value);
  return (
    <section aria-label="Notifications">
      <h1>
        Notifications{" "}
        {value !== null && value.length > 0 && <small>{value.length.toLocaleString("en")}</small>}
      </h1>
      <NewSubscription onMade={reload} />
      <Problem error={error} />
      {value === null && !error && <p class="loading">Reading the subscriptions …</p>}
      {value?.length === 0 && (
        <Empty title="Nothing reaches you while this page is closed">
          A question that nobody sees waits. Add above where it should reach you.
        </Empty>
      )}
      <Windowed items={value ?? []} keyOf={({ id }) => id} kind="tokens">
        {(subscription) => <SubscriptionRow subscription={subscription} onChange={reload} />}
      </Windowed>
    </section>
  );
}
