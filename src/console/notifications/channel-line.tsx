import type { Subscription, SubscriptionTest } from "../../schema/subscription.ts";
import { inUnits } from "../agents/duration.ts";
import { Age } from "../ui/age.tsx";
import { CHANNEL_WORDS } from "./words.ts";

interface Props {
  readonly channel: Subscription["deliver"][number];
  /** What a test found just now. */
  readonly tested: SubscriptionTest["deliver"][number] | undefined;
}

/** Where a channel goes, how it goes, and why not. */
export function ChannelLine({ channel, tested }: Props) {
  const { kind, to, state, problem, waiting, dropped, delivered_at, after_seconds } = channel;
  const after = inUnits(after_seconds);
  return (
    <>
      <span class={`channel-state is-${state}`}>{state}</span>
      <span>
        {CHANNEL_WORDS[kind]} <code>{to}</code>
        {after_seconds > 0 && ` after ${after.number} ${after.unit}`}
      </span>
      <span class="dim">
        {delivered_at === null ? "nothing delivered yet" : "delivered "}
        {delivered_at !== null && <Age at={delivered_at} ago />}
        {waiting > 0 && `, ${waiting.toLocaleString("en")} waiting`}
        {dropped > 0 && `, ${dropped.toLocaleString("en")} dropped`}
      </span>
      {problem && (
        <span>
          {problem.message} Since <Age at={problem.since} />.
        </span>
      )}
      {tested && (
        <span role="status">{tested.delivered ? "Test delivered." : `Test failed: ${tested.problem}`}</span>
      )}
    </>
  );
}
