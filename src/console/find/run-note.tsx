/** How far one action on many delegations is, and what became of each. */
import { ErrandApiError } from "../../client/errors.ts";
import type { Delegation } from "../../schema/delegation.ts";
import { hrefOf } from "../app/route.ts";
import { Said } from "../ui/said.tsx";
import { useFirst } from "../ui/use-first.tsx";
import { sentence, taskText } from "../ui/words.ts";
import { WORDS } from "./acts.ts";
import { close, goOn, isBusy, type Refused, type Run, stop } from "./run.ts";

/** Links; more are shown on request. */
const SHOWN = 20;

export function RunNote({ run }: { readonly run: Run }) {
  const { state, total, left, done, refused } = run;
  const again = done.flatMap((one) => one.again ?? []);
  return (
    <>
      <span role="status">{textOf(run)}</span>
      {isBusy() && <progress max={total} value={total - left.length} />}
      {state === "running" && (
        <button type="button" onClick={stop}>
          Stop
        </button>
      )}
      {(state === "stopped" || state === "away") && left.length > 0 && (
        <button type="button" class="primary" onClick={goOn}>
          Go on with {left.length.toLocaleString("en")}
        </button>
      )}
      {!isBusy() && (
        <button type="button" class="quiet" onClick={close}>
          Close
        </button>
      )}
      {(refused.length > 0 || again.length > 0) && !isBusy() && (
        <div class="run-parts">
          {byReason(refused).map(({ why, delegations }) => (
            <section key={why}>
              <p class="problem">{why}</p>
              <Links delegations={delegations} />
            </section>
          ))}
          {again.length > 0 && (
            <details>
              <summary>The new ones</summary>
              <Links delegations={again} />
            </details>
          )}
        </div>
      )}
    </>
  );
}

const many = (number: number): string => number.toLocaleString("en");

function textOf({ act, state, total, left, done, refused, unsure }: Run): string {
  const { doing, done: did } = WORDS[act];
  if (state === "running") return `${doing}: ${many(total - left.length)} of ${many(total)}`;
  if (state === "stopping") return "Stopping …";
  const result = [
    `${many(done.length)} ${did}`,
    ...(refused.length > 0 ? [`${many(refused.length)} refused`] : []),
    ...(left.length > unsure.size ? [`${many(left.length - unsure.size)} not ${did}`] : []),
    ...(unsure.size > 0 ? [`of ${many(unsure.size)} it is not known yet`] : []),
  ].join(", ");
  const isLost = state === "losing" || state === "away";
  return `${isLost ? "The broker does not answer: " : state === "stopped" ? "Stopped: " : ""}${result}.`;
}

/** The codes whose messages name one delegation. */
const WHY: Readonly<Record<string, string>> = {
  already_finished: "They had ended before.",
  delegation_not_found: "They do not exist any more.",
  wrong_state: "They are in another state now.",
  agent_unknown: "Their agent does not exist any more.",
};

function byReason(refused: readonly Refused[]) {
  const reasons = new Map<string, Delegation[]>();
  for (const { delegation, error } of refused) {
    const known = error instanceof ErrandApiError ? WHY[error.code] : undefined;
    const why = known ?? sentence(error instanceof Error ? error.message : String(error));
    reasons.set(why, [...(reasons.get(why) ?? []), delegation]);
  }
  return [...reasons].map(([why, delegations]) => ({ why, delegations }));
}

function Links({ delegations }: { readonly delegations: readonly Delegation[] }) {
  const { shown, more } = useFirst(delegations, SHOWN, "delegation");
  return (
    <>
      <ul>
        {shown.map((one) => (
          <li key={one.id}>
            <a href={hrefOf(one.id)}>
              <Said>{taskText(one)}</Said>
            </a>{" "}
            <span class="dim">{one.target}</span>
          </li>
        ))}
      </ul>
      {more}
    </>
  );
}
