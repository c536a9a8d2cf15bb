import { useSignal } from "@preact/signals";
import type { ChannelKind } from "../../schema/notice.ts";
import type { SubscriptionInput } from "../../schema/subscription.ts";
import { toSeconds } from "../agents/duration.ts";
import { agents } from "../data/agents.ts";
import { clientOf, turnOff, turnOn, whyNot } from "../push/browser.ts";
import { pushed } from "../push/stored.ts";
import { session } from "../session/session.ts";
import { Problem } from "../ui/problem.tsx";
import { useAction } from "../ui/use-action.ts";
import { ChannelFields, channelOf } from "./channel-fields.tsx";
import { NOTICE_WORDS } from "./words.ts";

const KINDS: readonly (readonly [ChannelKind, string])[] = [
  ["web_push", "This browser"],
  ["ntfy", "ntfy, for a phone"],
  ["slack", "Slack, or what is compatible"],
  ["email", "Mail"],
  ["webhook", "Webhook, for programs"],
];
const NOTICES = ["question", "question_expiring", "question_expired", "ended", "no_worker"] as const;

/** Adds a subscription. The first choice is this browser, which is also turned off here. */
export function NewSubscription({ onMade }: { readonly onMade: () => void }) {
  const kind = useSignal<ChannelKind>("web_push");
  const made = useSignal("");
  const { isRunning, error, run } = useAction();
  const isBrowser = kind.value === "web_push";
  const reason = isBrowser ? whyNot() : null;
  const isOn = isBrowser && pushed.value !== null;
  const isCaller = session.value?.principal.startsWith("caller:") === true;
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const { currentTarget: form } = event;
    if (!(form instanceof HTMLFormElement)) return;
    const values = new FormData(form);
    const text = (name: string): string => String(values.get(name) ?? "").trim();
    const events = NOTICES.filter((notice) => values.has(notice));
    void run(async () => {
      made.value = "";
      if (events.length === 0) throw new Error("Choose at least one thing to be notified of.");
      const after = toSeconds(Number(text("after")), "minutes");
      const { value } = kind;
      const settings = { events, ...settingsOf(text) };
      if (value === "web_push") await turnOn({ ...settings, deliver: [] }, after);
      else await clientOf().create({ ...settings, deliver: [channelOf(value, text, after)] });
      form.reset();
      made.value = "Added. Test sends a first one.";
      onMade();
    });
  };
  const end = () =>
    void run(async () => {
      await turnOff();
      made.value = "Turned off.";
      onMade();
    });
  return (
    <form class="fields new-subscription" onSubmit={submit}>
      <label>
        <span>Notify me by</span>
        <select
          value={kind.value}
          onChange={({ currentTarget }) => {
            kind.value = KINDS.find(([one]) => one === currentTarget.value)?.[0] ?? "web_push";
          }}
        >
          {KINDS.map(([one, words]) => (
            <option key={one} value={one}>
              {words}
            </option>
          ))}
        </select>
      </label>
      {!isBrowser && <ChannelFields kind={kind.value} />}
      {reason !== null && <p class="wide">{reason}</p>}
      {isOn && <p class="wide">This browser is notified. To change of what, turn it off and on again.</p>}
      {reason === null && !isOn && (
        <>
          <fieldset class="wide">
            <legend>Of</legend>
            {NOTICES.filter((notice) => !(isCaller && notice === "no_worker")).map((notice) => (
              <label key={notice} class="check">
                <input type="checkbox" name={notice} defaultChecked={notice.startsWith("question")} />
                <span>{NOTICE_WORDS[notice]}</span>
              </label>
            ))}
          </fieldset>
          <When />
        </>
      )}
      <Problem error={error} />
      <div class="buttons wide">
        {isOn ? (
          <button type="button" disabled={isRunning} onClick={end}>
            Turn off
          </button>
        ) : (
          reason === null && (
            <button type="submit" class="primary" disabled={isRunning}>
              {isBrowser ? "Notify me in this browser" : "Add"}
            </button>
          )
        )}
        <span role="status">{made.value}</span>
      </div>
    </form>
  );
}

/** Which agents, and at which times. */
function When() {
  return (
    <>
      <label>
        <span>
          Agents <small>their names</small>
        </span>
        <input name="agents" list="notified-agents" placeholder="all" />
      </label>
      <label>
        <span>
          After <small>minutes, if it still matters</small>
        </span>
        <input type="number" name="after" min={0} max={1440} step="any" placeholder="at once" />
      </label>
      <label class="wide">
        <span>
          Quiet hours <small>{zone()}; what comes in between waits, but not what is about to expire</small>
        </span>
        <span class="quiet-hours">
          <input type="time" name="quiet_from" aria-label="Quiet from" />
          <input type="time" name="quiet_to" aria-label="Quiet until" />
        </span>
      </label>
      <datalist id="notified-agents">
        {agents.value?.map(({ name }) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </>
  );
}

const zone = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

function settingsOf(text: (name: string) => string): Pick<SubscriptionInput, "filter" | "quiet"> {
  const names = text("agents")
    .split(/[\s,]+/)
    .filter(Boolean);
  const [from, to] = [text("quiet_from"), text("quiet_to")];
  return {
    ...(names.length > 0 && { filter: { agents: names } }),
    // With only one of them, the broker says what is missing.
    ...((from !== "" || to !== "") && { quiet: { from, to, time_zone: zone() } }),
  };
}
