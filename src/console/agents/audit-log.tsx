import type { AuditEntry } from "../../schema/audit.ts";
import { go, hrefOf, hrefWith, route } from "../app/route.ts";
import type { Connection } from "../data/connection.ts";
import { Age } from "../ui/age.tsx";
import { Empty } from "../ui/empty.tsx";
import { Problem } from "../ui/problem.tsx";
import { Said } from "../ui/said.tsx";
import { useLoaded } from "../ui/use-loaded.ts";
import { instantText, taskText } from "../ui/words.ts";
import { auditText, isOfKind, KINDS, type Kind, type Names, ownersOf } from "./audit-text.ts";

/** The newest entries that fit, among the newest; `errand audit` has all. */
const MAX = 200;
const MAX_READ = 2_000;

/** The audit log: who changed tokens, sessions or agents, erased delegations, or acted in bulk. */
export function AuditLog() {
  const { params } = route.value;
  const kind = KINDS.find(([name]) => name === params.get("of"))?.[0] ?? "changes";
  const by = params.get("by") ?? "";
  const { value, error } = useLoaded(kind, (connection, signal) => read(connection, kind, signal));
  const names = new Map([...ownersOf(value?.all ?? []), ...(value?.tasks ?? [])]);
  const people = [...new Set([...(value?.fitting.map((entry) => entry.by) ?? []), ...(by ? [by] : [])])];
  const shown = value?.fitting.filter((entry) => by === "" || entry.by === by) ?? [];
  return (
    <section aria-label="Log">
      <div class="log-head">
        <h1>
          Log <small>who changed what</small>
        </h1>
        <select
          aria-label="What is shown"
          value={kind}
          onChange={({ currentTarget }) => go(hrefWith({ of: currentTarget.value }))}
        >
          {KINDS.map(([name, title]) => (
            <option key={name} value={name}>
              {title}
            </option>
          ))}
        </select>
        {people.length > 1 && (
          <select
            aria-label="By whom"
            value={by}
            onChange={({ currentTarget }) => go(hrefWith({ by: currentTarget.value || undefined }))}
          >
            <option value="">By everybody</option>
            {people.sort().map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        )}
      </div>
      <Problem error={error} />
      {value === null && error === null && <p class="loading">Reading the log …</p>}
      {value !== null && shown.length === 0 && (
        <Empty title={kind === "changes" ? "Nothing changed yet" : "Nothing of this kind"}>
          Who makes or revokes tokens, changes agents, erases delegations or acts in bulk is written here.
        </Empty>
      )}
      <ul class="log">
        {shown.map((entry) => (
          <li key={entry.id}>
            <span class="log-text">
              <b>{entry.by}</b> <What entry={entry} names={names} />
            </span>
            <span class="log-at">
              <Age at={entry.at} ago /> <small>{instantText(entry.at)}</small>
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

interface WhatProps {
  readonly entry: AuditEntry;
  readonly names: Names;
}

function What({ entry, names }: WhatProps) {
  const { action, subject } = entry;
  const { what, whom } = auditText(entry, names);
  return (
    <span title={`${action} ${subject}`}>
      {what}{" "}
      {action === "delegation.decide" ? (
        <a href={hrefOf(subject)}>
          <Said>{whom}</Said>
        </a>
      ) : (
        <Said>{whom}</Said>
      )}
    </span>
  );
}

/** All entries that were read say whose a token or a session is, and the answers of what the decisions were about. */
async function read({ admin, pages }: Connection, kind: Kind, signal: AbortSignal) {
  const all: AuditEntry[] = [];
  const fitting: AuditEntry[] = [];
  for await (const entry of admin.audit({}, { signal })) {
    all.push(entry);
    if (isOfKind(entry, kind)) fitting.push(entry);
    if (fitting.length >= MAX || all.length >= MAX_READ) break;
  }
  const decided = fitting.filter(({ action }) => action === "delegation.decide");
  const tasks = await tasksOf(new Set(decided.map(({ subject }) => subject)), pages, signal);
  return { all, fitting, tasks };
}

/** Of the newest answers. */
const MAX_PAGES = 5;

/** The tasks of delegations whose questions were answered, by their ids. */
async function tasksOf(
  ids: ReadonlySet<string>,
  pages: Connection["pages"],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const tasks = new Map<string, string>();
  let cursor: string | null | undefined;
  for (let page = 0; page < MAX_PAGES && tasks.size < ids.size && cursor !== null; page += 1) {
    const read = await pages.answers({ cursor, limit: 100 }, signal);
    for (const answer of read.answers)
      if (ids.has(answer.delegation_id)) tasks.set(answer.delegation_id, taskText(answer));
    cursor = read.next_cursor;
  }
  return tasks;
}
