import type { AuditEntry } from "../../schema/audit.ts";
import type { Connection } from "../data/connection.ts";
import { Age } from "../ui/age.tsx";
import { Empty } from "../ui/empty.tsx";
import { Problem } from "../ui/problem.tsx";
import { Said } from "../ui/said.tsx";
import { useLoaded } from "../ui/use-loaded.ts";
import { auditText, ownersOf } from "./audit-text.ts";

/** The newest entries; `errand audit` has all. */
const MAX = 200;

/** The audit log: who changed tokens, sessions or agents, erased delegations, or acted in bulk. */
export function AuditLog() {
  const { value, error } = useLoaded("log", read);
  const owners = ownersOf(value ?? []);
  return (
    <section aria-labelledby="log-title">
      <h1 id="log-title">Log</h1>
      <Problem error={error} />
      {value?.length === 0 && (
        <Empty title="Nothing changed yet">
          Who makes or revokes tokens, changes agents, erases delegations or acts in bulk is written here.
        </Empty>
      )}
      <ul class="log">
        {value?.map((entry, index) => (
          <li key={index}>
            <Age at={entry.at} ago />
            <b>{entry.by}</b>
            <What entry={entry} owners={owners} />
          </li>
        ))}
      </ul>
    </section>
  );
}

interface WhatProps {
  readonly entry: AuditEntry;
  readonly owners: ReadonlyMap<string, string>;
}

function What({ entry, owners }: WhatProps) {
  const { what, whom } = auditText(entry, owners);
  return (
    <span class="log-what" title={`${entry.action} ${entry.subject}`}>
      {what} <Said>{whom}</Said>
    </span>
  );
}

async function read({ admin }: Connection, signal: AbortSignal): Promise<readonly AuditEntry[]> {
  const found: AuditEntry[] = [];
  for await (const entry of admin.audit({}, { signal })) {
    found.push(entry);
    if (found.length >= MAX) break;
  }
  return found;
}
