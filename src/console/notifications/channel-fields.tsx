/** Where a channel goes, as fields of a form. A browser has none: it says itself where it is. */
import type { ChannelKind } from "../../schema/notice.ts";
import type { SubscriptionInput } from "../../schema/subscription.ts";

type Kind = Exclude<ChannelKind, "web_push">;
type ChannelInput = SubscriptionInput["deliver"][number];

const PLACES = {
  ntfy: {
    label: "Topic",
    note: "whoever knows it can read along",
    placeholder: "https://ntfy.sh/my-long-secret-topic",
  },
  slack: {
    label: "URL of the incoming webhook",
    note: "it is never shown again",
    placeholder: "https://hooks.slack.com/services/…",
  },
  email: { label: "Address", note: "", placeholder: "ann@example.com" },
  webhook: { label: "URL", note: "gets a POST with JSON", placeholder: "https://example.com/hook" },
} as const;

export function ChannelFields({ kind }: { readonly kind: ChannelKind }) {
  if (kind === "web_push") return null;
  const { label, note, placeholder } = PLACES[kind];
  const takesToken = kind === "ntfy" || kind === "webhook";
  const words = (
    <span>
      {label} <small>{note}</small>
    </span>
  );
  return (
    <>
      {kind === "email" ? (
        <label class="wide">
          {words}
          <input type="email" name="to" required placeholder={placeholder} />
        </label>
      ) : (
        <label class="wide" key={kind}>
          {words}
          <input type="url" name="to" required placeholder={placeholder} />
        </label>
      )}
      {takesToken && <Secret name="token" label="Access token" />}
      {kind === "webhook" && <Secret name="secret" label="Secret" placeholder="whsec_…" />}
    </>
  );
}

interface SecretProps {
  readonly name: string;
  readonly label: string;
  readonly placeholder?: string;
}

function Secret({ name, label, placeholder = "none" }: SecretProps) {
  return (
    <label>
      <span>
        {label} <small>never shown again</small>
      </span>
      <input name={name} type="password" autocomplete="new-password" placeholder={placeholder} />
    </label>
  );
}

/** The channel of the fields. The broker refuses what it cannot use. */
export function channelOf(kind: Kind, text: (name: string) => string, after_seconds: number): ChannelInput {
  const to = text("to");
  const token = text("token") === "" ? {} : { token: text("token") };
  switch (kind) {
    case "ntfy":
      return { kind, url: to, ...token, after_seconds };
    case "slack":
      return { kind, url: to, after_seconds };
    case "email":
      return { kind, to, after_seconds };
    case "webhook":
      return {
        kind,
        url: to,
        ...token,
        ...(text("secret") !== "" && { secret: text("secret") }),
        after_seconds,
      };
  }
}
