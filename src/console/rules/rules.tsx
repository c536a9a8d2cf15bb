import { useComputed } from "@preact/signals";
import { argumentsText, usesText } from "../../client/rule-words.ts";
import { Rules as Client } from "../../client/rules.ts";
import type { Rule } from "../../schema/rule.ts";
import { adopt } from "../app/adopt.ts";
import { hrefOf } from "../app/route.ts";
import { now } from "../data/clock.ts";
import { styles } from "../schedules/schedules.css";
import { isOperator } from "../session/rights.ts";
import { session } from "../session/session.ts";
import { Age, Left } from "../ui/age.tsx";
import { CommandLine } from "../ui/command-line.tsx";
import { Empty } from "../ui/empty.tsx";
import { Problem } from "../ui/problem.tsx";
import { useAction } from "../ui/use-action.ts";
import { useLoaded } from "../ui/use-loaded.ts";
import { Windowed } from "../ui/windowed.tsx";

adopt(styles);

/** How often the list is read again, ms. */
const AGAIN_MS = 10_000;

const clientOf = () => new Client(session.value?.connection.options);

/** What is approved or denied in advance, by whom, how often it was used, and the buttons that revoke it. */
export function Rules() {
  const round = useComputed(() => Math.floor(now.value / AGAIN_MS));
  const read = (_: unknown, signal: AbortSignal) => clientOf().list({ signal });
  const { value, error, reload } = useLoaded("rules", read, round.value);
  // The newest first, and those that have ended last.
  const rules = value
    ?.toReversed()
    .sort((a, b) => Number(b.state === "active") - Number(a.state === "active"));
  return (
    <section aria-label="Rules">
      <h1>Rules {rules && rules.length > 0 && <small>{rules.length.toLocaleString("en")}</small>}</h1>
      <Problem error={error} />
      {!rules && !error && <p class="loading">Reading the rules …</p>}
      {rules?.length === 0 && (
        <Empty
          title="No rule yet"
          line={<CommandLine command="rules create scout fs.write --path path=/srv/site --for 20m" />}
        >
          A rule approves or denies an agent's actions in advance, in your name.
        </Empty>
      )}
      <Windowed items={rules ?? []} keyOf={({ id }) => id} kind="tokens">
        {(rule) => <Row rule={rule} onChange={reload} />}
      </Windowed>
    </section>
  );
}

function Row({ rule, onChange }: { readonly rule: Rule; readonly onChange: () => void }) {
  const { id, by, agent, action, decision, state, expires_at, note, last_uses } = rule;
  const { isRunning, error, run } = useAction();
  const isActive = state === "active";
  const isOwn = isOperator.value || session.value?.principal === by;
  const [last] = last_uses;
  return (
    <div class="schedule">
      <b>
        {decision} {action}
      </b>
      <span>
        {by} → {agent}
      </span>
      <span class="dim">
        with {argumentsText(rule)}; {state.replace("_", " ")}
        {isActive && expires_at !== null && (
          <>
            , <Left until={expires_at} />
          </>
        )}
        , used {usesText(rule)}
        {last && (
          <>
            , last{" "}
            <a href={hrefOf(last.delegation_id)}>
              <Age at={last.at} ago />
            </a>
          </>
        )}
        {note !== null && `; ${note}`}
      </span>
      {isOwn && isActive && (
        <button
          type="button"
          aria-label={`Revoke ${decision} ${action} of ${agent}`}
          disabled={isRunning}
          onClick={() =>
            void run(async () => {
              await clientOf().revoke(id);
              onChange();
            })
          }
        >
          Revoke
        </button>
      )}
      <Problem error={error} />
    </div>
  );
}
