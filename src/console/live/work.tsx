/** The delegations: what is in progress, what waits for its parts, then the queue, which is folded by agent if it is long. */
import { type Signal, useSignal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import { href } from "../app/route.ts";
import { agentOf } from "../data/agents.ts";
import { now } from "../data/clock.ts";
import type { ListedDelegation } from "../data/listed.ts";
import { mine } from "../needs/mine.ts";
import { Age } from "../ui/age.tsx";
import { StateMark } from "../ui/state-mark.tsx";
import { News } from "../ui/steady.tsx";
import { count } from "../ui/words.ts";
import { calmNow } from "./calm-clock.ts";
import { DelegationRows } from "./delegation-rows.tsx";
import { instantOf } from "./need.ts";
import { isIn, type Place, usePlaces } from "./places.ts";
import { presenceText, waitingText } from "./presence-text.ts";
import { askingOthers, work } from "./tally.ts";

/** Rows at most: of what is in progress, of what waits for parts, of a queue that is not folded, of one that is opened; and folded queues. */
const MOST = { working: 20, awaiting: 8, queued: 8, opened: 5, folded: 20 } as const;

export function Work() {
  const { working, awaiting, queued } = work.value;
  const others = askingOthers.value;
  const area = useRef<HTMLDivElement>(null);
  const below = useRef<HTMLDivElement>(null);
  const queue = useRef<HTMLElement>(null);
  return (
    <div ref={area}>
      <section class="live-part" aria-label="In progress">
        <div class="part-head">
          <h2>
            In progress <small>{working.length + others.length || "nothing"}</small>
          </h2>
          {mine.value.length > 0 && (
            <a class="asks" href={href("needs")}>
              <StateMark phase="asks" /> {count(mine.value.length, "asks", "ask")}: see Needs you
            </a>
          )}
        </div>
        <DelegationRows
          delegations={[...others, ...working]}
          most={MOST.working}
          place={area}
          more={href("find", { state: "live" })}
          appends={() => !isIn(below)}
        />
      </section>
      <div ref={below}>
        {awaiting.length > 0 && (
          <section class="live-part" aria-label="Waiting for parts">
            <div class="part-head">
              <h2>
                Waiting for parts <small>{awaiting.length.toLocaleString("en")}</small>
              </h2>
            </div>
            <DelegationRows
              delegations={awaiting}
              most={MOST.awaiting}
              place={below}
              more={href("find", { state: "awaiting_children" })}
              appends={() => !isIn(queue)}
            />
          </section>
        )}
        {queued.length > 0 && (
          <section class="live-part" aria-label="Queue" ref={queue}>
            <div class="part-head">
              <h2>
                Queue <small>{queued.length.toLocaleString("en")}</small>
              </h2>
            </div>
            <Queue queued={queued} place={queue} />
          </section>
        )}
      </div>
    </div>
  );
}

type Listed = Signal<ListedDelegation>;
interface QueueProps {
  readonly queued: readonly Listed[];
  readonly place: Place;
}

function Queue({ queued, place }: QueueProps) {
  if (queued.length <= MOST.queued)
    return (
      <DelegationRows
        delegations={queued}
        most={MOST.queued}
        place={place}
        more={href("find", { state: "live" })}
      />
    );
  return <Folded queued={queued} place={place} />;
}

function Folded({ queued, place }: QueueProps) {
  const queues = useMemo(() => queuesOf(queued), [queued]);
  const found = { items: [...queues.keys()].slice(0, MOST.folded), isLong: queues.size > MOST.folded };
  const { rows, waiting, isLong, showAll } = usePlaces(
    place,
    found,
    (name) => name,
    () => true,
  );
  return (
    <div class="steady">
      <News of="queue" count={waiting} onShow={showAll} />
      <ul class="rows lines">
        {rows.map((target) => (
          <OneQueue key={target} target={target} queued={queues.get(target) ?? []} place={place} />
        ))}
      </ul>
      {isLong && (
        <a class="more" href={href("find", { state: "submitted" })}>
          {count(Math.max(0, queues.size - rows.length), "more agent")}
        </a>
      )}
    </div>
  );
}

/** By agent, the one first whose oldest waits longest. */
function queuesOf(queued: readonly Listed[]): ReadonlyMap<string, readonly Listed[]> {
  const queues = new Map<string, Listed[]>();
  for (const listed of queued) {
    // The target of a delegation never changes.
    const { target } = listed.peek();
    const queue = queues.get(target);
    if (queue) queue.push(listed);
    else queues.set(target, [listed]);
  }
  return queues;
}

interface OneProps extends QueueProps {
  readonly target: string;
}

/** `38 wait in archivist`. */
function OneQueue({ target, queued, place }: OneProps) {
  const isOpen = useSignal(false);
  const agent = agentOf(target);
  const [oldest] = queued;
  const at = oldest ? instantOf(oldest.value) : null;
  return (
    <li>
      <button
        type="button"
        class="queue-line"
        data-row={`queue of ${target}`}
        aria-expanded={isOpen.value}
        onClick={() => {
          isOpen.value = !isOpen.value;
        }}
      >
        <StateMark phase="queued" />
        <span>
          <b>{waitingText(queued.length)}</b> in {target}
        </span>
        <span class="dim">{agent && presenceText(agent, calmNow.value).who}</span>
        <span class="row-age">
          {at !== null && Date.parse(at) <= now.peek() && (
            <>
              oldest <Age at={at} />
            </>
          )}
        </span>
      </button>
      {isOpen.value && queued.length > 0 && (
        <div class="agent-work">
          <DelegationRows
            delegations={queued}
            most={MOST.opened}
            place={place}
            more={href("find", { target, state: "submitted" })}
            isOfAgent
          />
        </div>
      )}
    </li>
  );
}
