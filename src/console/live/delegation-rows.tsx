/** Delegations, a line each: some of them, and how many more there are. */
import type { Signal } from "@preact/signals";
import type { ListedDelegation } from "../data/listed.ts";
import { News } from "../ui/steady.tsx";
import { count } from "../ui/words.ts";
import { DelegationRow } from "./delegation-row.tsx";
import { type Place, usePlaces } from "./places.ts";

interface Props {
  /** In their order. */
  readonly delegations: readonly Signal<ListedDelegation>[];
  readonly most: number;
  /** While the reader is in it, the rows keep their places. */
  readonly place: Place;
  /** Where all are listed. */
  readonly more: string;
  /** They are below their agent's line, which names it. */
  readonly isOfAgent?: boolean;
  /** Whether what is new may be added below while the reader is there. */
  readonly appends?: (() => boolean) | undefined;
}

const idOf = (listed: Signal<ListedDelegation>): string => listed.peek().id;

export function DelegationRows({ delegations, most, place, more, isOfAgent = false, appends }: Props) {
  const found = { items: delegations.slice(0, most), isLong: delegations.length > most };
  const { rows, waiting, isLong, showAll } = usePlaces(place, found, idOf, appends);
  // Rows that are over, or elsewhere by now, may still have their places.
  const live = new Set(delegations.map(idOf));
  const rest = live.size - rows.filter((listed) => live.has(idOf(listed))).length;
  return (
    <div class="steady">
      <News of="delegation" count={waiting} onShow={showAll} />
      <ul class="rows lines">
        {rows.map((listed) => (
          <li key={idOf(listed)}>
            <DelegationRow listed={listed} isOfAgent={isOfAgent} />
          </li>
        ))}
      </ul>
      {isLong && (
        <a class="more" href={more}>
          {count(rest, "more delegation")}
        </a>
      )}
    </div>
  );
}
