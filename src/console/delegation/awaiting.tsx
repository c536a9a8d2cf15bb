/** For which parts a delegation waits, and how each of them is. */
import { type Delegation, isTerminal } from "../../schema/delegation.ts";
import { adopt } from "../app/adopt.ts";
import { hrefOf, hrefWith } from "../app/route.ts";
import type { Connection } from "../data/connection.ts";
import { listedOf } from "../data/delegations.ts";
import { type ListedDelegation, toListed } from "../data/listed.ts";
import { Left } from "../ui/age.tsx";
import { Said } from "../ui/said.tsx";
import { StateMark } from "../ui/state-mark.tsx";
import { useLoaded } from "../ui/use-loaded.ts";
import { count, PHASES, STATE_WORDS, taskText } from "../ui/words.ts";
import { styles } from "./awaiting.css";

adopt(styles);

/** Further parts are only counted; the timeline shows all. */
const SHOWN = 5;

export function Awaiting({ delegation: { id, target, awaits } }: { readonly delegation: Delegation }) {
  const parts = useParts(id);
  if (!awaits) return null;
  const { children, left, expires_at } = awaits;
  const found = children.map((child) => ({ child, part: listedOf(child)?.value ?? parts.get(child) }));
  const isOver = ({ part }: (typeof found)[number]) => part !== undefined && isTerminal(part.state);
  const first = found.toSorted((a, b) => Number(isOver(a)) - Number(isOver(b))).slice(0, SHOWN);
  const more = children.length - first.length;
  return (
    <section class="awaiting" aria-label="What it waits for">
      <p class="why">
        It waits for {left === children.length ? "" : `${left} of `}
        {count(children.length, "part")} to end, at most <Left until={expires_at} isBare />; then {target}{" "}
        goes on.
      </p>
      <ul>
        {first.map(({ child, part }) => (
          <li key={child}>
            {part && <StateMark phase={PHASES[part.state]} />}
            <a href={hrefOf(child)}>{part ? <Said>{taskText(part)}</Said> : `…${child.slice(-8)}`}</a>
            {part && (
              <span class="dim">
                {part.target}, {STATE_WORDS[part.state]}
              </span>
            )}
          </li>
        ))}
        {more > 0 && (
          <li>
            <a href={hrefWith({ tab: "timeline" })}>{count(more, "more part")} in the timeline</a>
          </li>
        )}
      </ul>
    </section>
  );
}

const PAGE = 100;

const NONE: ReadonlyMap<string, ListedDelegation> = new Map();

/** The parts by their ids. What is live is in view also without them. */
function useParts(parent_id: string) {
  const read = async ({ pages }: Connection, signal: AbortSignal) => {
    const { delegations } = await pages.list({ parent_id, limit: PAGE }, signal);
    return new Map(delegations.map((one) => [one.id, toListed(one)]));
  };
  return useLoaded(parent_id, read).value ?? NONE;
}
