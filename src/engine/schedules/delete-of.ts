/** Deletes all schedules of an owner, an agent that is deleted. Safe to repeat. */
import type { Broker } from "../broker.ts";

const AT_ONCE = 100;

export async function deleteSchedulesOf(
  { schedules }: Pick<Broker, "schedules">,
  owner: string,
): Promise<void> {
  for (;;) {
    const ids = await schedules.store.ids(owner, null, AT_ONCE);
    if (ids.length === 0) return;
    for (const id of ids) {
      await schedules.store.delete(id, owner);
      await schedules.removeWakes(id);
    }
  }
}
