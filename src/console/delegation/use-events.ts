import { useRef } from "preact/hooks";
import type { Delegation } from "../../schema/delegation.ts";
import type { Connection } from "../data/connection.ts";
import { useLoaded } from "../ui/use-loaded.ts";
import { type EventLog, readEvents } from "./read-events.ts";

/** All events of a delegation, each read once, while `isNeeded`. */
export function useEvents({ id, version }: Pick<Delegation, "id" | "version">, isNeeded: boolean) {
  const { current: log } = useRef<EventLog>({ events: [], after: "0" });
  const read = async ({ pages }: Connection, signal: AbortSignal) => {
    if (isNeeded) return await readEvents(pages, { id, version }, log, signal);
    return log.events.length > 0 ? log.events : null;
  };
  return useLoaded(id, read, `${version} ${isNeeded}`);
}
