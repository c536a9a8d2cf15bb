/** All events of a delegation. Every version has one more: only those after the last one are read. */
import { useRef } from "preact/hooks";
import type { Delegation } from "../../schema/delegation.ts";
import type { DelegationEvent, StreamEvent } from "../../schema/event.ts";
import type { Connection } from "../data/connection.ts";
import { useLoaded } from "../ui/use-loaded.ts";

const PAGE = 1000;

export function useEvents({ id, version }: Pick<Delegation, "id" | "version">) {
  const found = useRef<readonly DelegationEvent[]>([]);
  const after = useRef("0");
  const read = async ({ pages }: Connection, signal: AbortSignal) => {
    for (;;) {
      const events = await pages.events(id, PAGE, signal, after.current);
      found.current = [...found.current, ...events.filter(isMove)];
      after.current = events.at(-1)?.id ?? after.current;
      if (events.length < PAGE) return found.current;
    }
  };
  return useLoaded(id, read, version);
}

const isMove = (event: StreamEvent): event is DelegationEvent =>
  event.type !== "DELEGATION_SNAPSHOT" && event.type !== "RESET";
