/** A note for a filter by error code that matches nothing: the codes that exist. */
import { ErrandApiError } from "../../client/errors.ts";
import { type ConnectionOptions, Http } from "../../client/http.ts";
import { listPage } from "../../client/list-page.ts";
import type { DelegationFilter } from "../../schema/delegation.ts";
import type { CliHost } from "../host.ts";
import { note, oneLine } from "./output.ts";

/** How many of the newest delegations are read. */
const READ = 100;
const ENDED = ["failed", "rejected", "canceled"] as const;

/** Prints the codes with which the newest delegations of this filter ended. */
export async function noteKnownCodes(
  host: CliHost,
  connection: ConnectionOptions,
  errorCode: string,
  filter: DelegationFilter,
): Promise<void> {
  try {
    const query = { ...filter, state: filter.state ?? ENDED, limit: READ };
    const { delegations } = await listPage(new Http({ ...connection, retryForMs: 0 }), query);
    const codes = new Set(delegations.flatMap(({ error }) => (error ? [oneLine(error.code)] : [])));
    // They are not failed any more, or redriven already.
    if (codes.has(errorCode)) return;
    const others = [...codes].sort().join(", ");
    await note(
      host,
      `none ended with ${errorCode}; ${others === "" ? "none failed" : `errors of the newest failures: ${others}`}.`,
    );
  } catch (error) {
    // The command itself has succeeded.
    if (!(error instanceof ErrandApiError)) throw error;
  }
}
