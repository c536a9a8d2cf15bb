import { useSignal } from "@preact/signals";
import type { Subscription, SubscriptionTest } from "../../schema/subscription.ts";
import { clientOf, turnOff } from "../push/browser.ts";
import { pushed } from "../push/stored.ts";
import { session } from "../session/session.ts";
import { Confirm } from "../ui/confirm.tsx";
import { orGone } from "../ui/or-gone.ts";
import { Problem } from "../ui/problem.tsx";
import { useAction } from "../ui/use-action.ts";
import { ChannelLine } from "./channel-line.tsx";
import { CHANNEL_WORDS, SHORT_NOTICE_WORDS } from "./words.ts";

interface Props {
  readonly subscription: Subscription;
  readonly onChange: () => void;
}

/** A subscription with the state of each channel, and its buttons. */
export function SubscriptionRow({ subscription, onChange }: Props) {
  const { id, name, deliver } = subscription;
  const { isRunning, error, run } = useAction();
  const tested = useSignal<SubscriptionTest["deliver"] | null>(null);
  const title = name ?? deliver.map(({ kind }) => CHANNEL_WORDS[kind]).join(", ");
  const isHere = pushed.value?.id === id;
  const remove = async () => {
    await (isHere ? turnOff() : orGone(clientOf().delete(id)));
    onChange();
  };
  const act = (work: () => Promise<unknown>) =>
    void run(async () => {
      tested.value = null;
      await work();
      onChange();
    });
  const test = async () => {
    tested.value = (await clientOf().test(id)).deliver;
  };
  return (
    <div class="subscription">
      <div class="subscription-head">
        <b>
          {title} {isHere && <small>this browser</small>}
        </b>
        <span class="buttons">
          <button type="button" aria-label={`Test ${title}`} disabled={isRunning} onClick={() => act(test)}>
            Test
          </button>
          {deliver.some(({ state }) => state !== "ok") && (
            <button
              type="button"
              aria-label={`Resume ${title}`}
              disabled={isRunning}
              onClick={() => act(() => clientOf().resume(id))}
            >
              Resume
            </button>
          )}
          <Confirm verb="Delete" object={title} question={`Delete ${title}?`} danger onConfirm={remove}>
            <p>Nothing more is sent there, not even what waits.</p>
          </Confirm>
        </span>
      </div>
      <p class="dim">{aboutText(subscription)}</p>
      <ul class="channels">
        {deliver.map((channel, place) => (
          <li key={`${place} ${channel.to}`}>
            <ChannelLine channel={channel} tested={tested.value?.[place]} />
          </li>
        ))}
      </ul>
      <Problem error={error} />
    </div>
  );
}

/** Of what it tells whom, and when not. */
function aboutText({ owner, events, filter, quiet }: Subscription): string {
  const { agents, delegators, states } = filter;
  return [
    owner === session.value?.principal ? "" : `for ${owner}: `,
    events.map((event) => SHORT_NOTICE_WORDS[event]).join(", "),
    agents ? ` of ${agents.join(", ")}` : "",
    delegators ? ` delegated by ${delegators.join(", ")}` : "",
    states ? `, only ${states.join(", ")}` : "",
    quiet ? `; quiet from ${quiet.from} to ${quiet.to} (${quiet.time_zone})` : "",
  ].join("");
}
