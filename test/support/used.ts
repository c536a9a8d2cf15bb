/** What delegations have used together, by their own records. */
import type { client } from "./broker.ts";

export async function usedWithin(
  { get, events }: Pick<ReturnType<typeof client>, "get" | "events">,
  ids: readonly string[],
): Promise<{ tokens: number; attempts: number }> {
  const sum = { tokens: 0, attempts: 0 };
  for (const id of ids) {
    const { usage } = (await get(id)).body;
    sum.tokens += (usage?.total.input_tokens ?? 0) + (usage?.total.output_tokens ?? 0);
    const shown: { status?: string; attempt?: number }[] = (await events(id)).body.events;
    sum.attempts += Math.max(
      0,
      ...shown.map(({ status, attempt = 0 }) => (status === "leased" ? attempt : 0)),
    );
  }
  return sum;
}
