/** What a schedule has delegated. */
import type { client } from "./broker.ts";

interface Listed {
  readonly id: string;
  readonly state: string;
  readonly metadata: { readonly schedule: { readonly id: string; readonly at: string } };
}

/** All delegations of a schedule, oldest first. */
export async function madeBy(api: ReturnType<typeof client>, schedule: string): Promise<Listed[]> {
  const all: Listed[] = [];
  for (let query = ""; ; ) {
    const { body } = await api.call("GET", `/v1/delegations?limit=100${query}`);
    all.push(...body.delegations);
    if (body.next_cursor === null) break;
    query = `&cursor=${body.next_cursor}`;
  }
  const own = all.filter(({ metadata }) => metadata.schedule?.id === schedule);
  return own.toSorted((a, b) => a.metadata.schedule.at.localeCompare(b.metadata.schedule.at));
}
