/** All events of a delegation. Every version has one more: only those after the last one are read. */
import { useRef } from "preact/hooks";
import type { Delegation } from "../../schema/delegation.ts";
import type { Connection } from "../data/connection.ts";
import { useLoaded } from "../ui/use-loaded.ts";
import { type ReadEvents, readEvents } from "./read-events.ts";

export function useEvents({ id, version }: Pick<Delegation, "id" | "version">) {
  const known = useRef<ReadEvents>({ events: [], after: "0" });
  const read = ({ pages }: Connection, signal: AbortSignal) => readEvents(pages, id, known.current, signal);
  return useLoaded(id, read, version);
}
