import { useRef } from "preact/hooks";
import type { DelegationEvent } from "../../../schema/event.ts";
import type { Connection } from "../../data/connection.ts";
import { Problem } from "../../ui/problem.tsx";
import { useLoaded } from "../../ui/use-loaded.ts";
import { type EventLog, readEvents } from "../read-events.ts";
import { EventList } from "./event-list.tsx";
import type { Node } from "./node.ts";

interface Given {
  readonly events: readonly DelegationEvent[] | null;
  readonly error: unknown;
}

interface Props {
  readonly node: Node;
  /** Null: they are read here. */
  readonly given: Given | null;
}

/** The events of the row that is selected. */
export function RowEventList({ node, given }: Props) {
  return given ? <Shown node={node} {...given} /> : <Read node={node} />;
}

function Read({ node }: { readonly node: Node }) {
  const { id, version } = node;
  const { current: log } = useRef<EventLog>({ events: [], after: "0" });
  const read = ({ pages }: Connection, signal: AbortSignal) =>
    readEvents(pages, { id, version }, log, signal);
  const { value, error } = useLoaded(id, read, version);
  return <Shown node={node} events={value} error={error} />;
}

function Shown({ node, events, error }: Given & Pick<Props, "node">) {
  if (error !== null && events === null) return <Problem error={error} />;
  return <EventList node={node} events={events} />;
}
