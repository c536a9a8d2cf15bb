import { useEffect, useRef } from "preact/hooks";
import { type Delegation, isTerminal } from "../../schema/delegation.ts";
import type { DelegationEvent } from "../../schema/event.ts";
import { delegationIdSchema } from "../../schema/values.ts";
import { hrefWith, route } from "../app/route.ts";
import { now } from "../data/clock.ts";
import type { Connection } from "../data/connection.ts";
import { toListed } from "../data/listed.ts";
import { useSoonAfter } from "../data/use-soon-after.ts";
import { AnswerForm, TimeLeft } from "../needs/question-card.tsx";
import { maySteer } from "../session/rights.ts";
import { JsonText } from "../ui/json.tsx";
import { loadEarly } from "../ui/output.tsx";
import { Problem } from "../ui/problem.tsx";
import { useLoaded } from "../ui/use-loaded.ts";
import { Actions } from "./actions.tsx";
import { Conversation } from "./conversation.tsx";
import { countFiles } from "./files/count.ts";
import { FilesTab } from "./files/lazy-tab.ts";
import { FollowUp } from "./follow-up.tsx";
import { Frame } from "./frame.tsx";
import { type EventLog, readEvents } from "./read-events.ts";
import { Summary } from "./summary.tsx";
import { Waterfall } from "./waterfall/waterfall.tsx";

loadEarly();

const TABS = ["conversation", "timeline", "files", "raw"] as const;
type Tab = (typeof TABS)[number];
const TITLES: Readonly<Record<Tab, string>> = {
  conversation: "Conversation",
  timeline: "Timeline",
  files: "Files",
  raw: "Raw",
};

/** What older links say. */
const FORMER: Readonly<Record<string, Tab>> = { artifacts: "files", tree: "timeline" };
const tabOf = (name: string | null): Tab =>
  TABS.find((one) => one === name || one === FORMER[name ?? ""]) ?? "conversation";

/** Everything about one delegation. */
export function DelegationPane({ id }: { readonly id: string }) {
  const isId = delegationIdSchema.safeParse(id).success;
  if (isId) return <Loaded id={id} />;
  return (
    <Frame>
      <Problem error={NO_ID} />
    </Frame>
  );
}

const NO_ID = new Error("The address of this page names no delegation. Its id may be cut off.");

function Loaded({ id }: { readonly id: string }) {
  const { value, error, reload } = useDelegation(id);
  return (
    <Frame delegation={value}>
      {value !== null ? (
        <Whole delegation={value} reload={reload} />
      ) : error === null ? (
        <p class="loading">Reading the delegation …</p>
      ) : (
        <Problem error={error} />
      )}
    </Frame>
  );
}

function Whole({ delegation, reload }: { readonly delegation: Delegation; readonly reload: () => void }) {
  const tab = tabOf(route.value.params.get("tab"));
  const files = countFiles(delegation);
  // Read once for all tabs that show them.
  const events = useEvents(delegation, tab !== "raw");
  return (
    <>
      <Summary delegation={delegation} />
      <Actions delegation={delegation} />
      <nav class="tabs" aria-label="Parts of the delegation">
        {TABS.filter((one) => one !== "raw" || tab === "raw").map((one) => (
          <a
            key={one}
            href={hrefWith({ tab: one === "conversation" ? undefined : one })}
            aria-current={tab === one ? "page" : undefined}
          >
            {TITLES[one]}
            {one === "files" && files > 0 && <small> {files}</small>}
          </a>
        ))}
      </nav>
      <div class="tab">
        {tab === "conversation" && <Talk delegation={delegation} events={events.value} reload={reload} />}
        {tab === "timeline" && (
          <Waterfall delegation={delegation} events={events.value} error={events.error} />
        )}
        {tab === "files" && <FilesTab delegation={delegation} events={events.value} />}
        {tab === "raw" && <JsonText value={delegation} />}
      </div>
    </>
  );
}

interface TalkProps {
  readonly delegation: Delegation;
  readonly events: readonly DelegationEvent[] | null;
  readonly reload: () => void;
}

function Talk({ delegation, events, reload }: TalkProps) {
  const { interrupt, state } = delegation;
  return (
    <>
      <Conversation delegation={delegation} events={events} />
      {interrupt && maySteer(delegation) && (
        <section
          class="question"
          // What was typed for one question must not answer the next one.
          key={interrupt.id}
          data-question={interrupt.id}
          tabIndex={-1}
          aria-label="The open question"
        >
          <TimeLeft interrupt={interrupt} />
          <AnswerForm listed={toListed(delegation)} interrupt={interrupt} />
        </section>
      )}
      {!interrupt && !isTerminal(state) && maySteer(delegation) && (
        <FollowUp id={delegation.id} onSent={reload} />
      )}
    </>
  );
}

/** An agent may report progress many times a second. */
const PAUSE_MS = 250;
/** The shortest time between two readings of a lease. */
const LEASE_MS = 2_000;

/** One delegation, read again soon after each of its events, and while a worker may extend its lease without one. */
function useDelegation(id: string) {
  const loaded = useLoaded(id, ({ delegator }, signal) => delegator.get(id, { signal }));
  const { reload, value } = loaded;
  const awaited = value?.awaits?.children;
  // The end of a part that it waits for changes it without an event of its own.
  useSoonAfter(
    ({ delegation_id: of, state }) => of === id || (isTerminal(state) && awaited?.includes(of) === true),
    reload,
    PAUSE_MS,
  );
  // Half of the time that is left: often enough to show a lease that is not extended as it ends.
  const leaseEnds = Date.parse(value?.lease?.expires_at ?? "");
  useEffect(() => {
    if (Number.isNaN(leaseEnds)) return;
    const timer = setTimeout(reload, Math.max(LEASE_MS, (leaseEnds - now.peek()) / 2));
    return () => clearTimeout(timer);
  }, [value]);
  return loaded;
}

/** All events of a delegation, each read once, while `isNeeded`. */
function useEvents({ id, version }: Pick<Delegation, "id" | "version">, isNeeded: boolean) {
  const { current: log } = useRef<EventLog>({ events: [], after: "0" });
  const read = async ({ pages }: Connection, signal: AbortSignal) => {
    if (isNeeded) return await readEvents(pages, { id, version }, log, signal);
    return log.events.length > 0 ? log.events : null;
  };
  return useLoaded(id, read, `${version} ${isNeeded}`);
}
