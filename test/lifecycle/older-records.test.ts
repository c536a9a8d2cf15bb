import { describe, expect, test } from "vitest";
import { PACKED, PACKED_NAMES } from "../../src/lifecycle/fields.ts";
import { MOVE_NAMES, MOVES, type Move } from "../../src/lifecycle/states.ts";
import { readSummaries } from "../../src/lifecycle/summary.ts";
import { type State, stateSchema } from "../../src/schema/delegation.ts";
import { openLifecycle } from "../support/lifecycle.ts";
import { fieldsOf, unpackFields } from "../support/record.ts";

/** The same delegation in a broker whose records are packed, or as older versions stored them. */
async function openPair(state: State) {
  const open = async () => {
    const lifecycle = await openLifecycle();
    const id = await lifecycle.inState(state);
    return { ...lifecycle, id, key: lifecycle.shards.at(0).delegation(id) };
  };
  const [packed, older] = [await open(), await open()];
  await unpackFields(older.redis, older.key);
  return { packed, older };
}

/** Without the times, the ids of events and of the delegation, which differ. */
function comparable(fields: object, id: string): unknown {
  const all = Object.entries(fields).filter(([name, value]) => value !== "" && name !== "event_id");
  const same = all.map(([name, value]) => [name, /_(?:at|by)$/.test(name) ? "set" : value]);
  return JSON.parse(JSON.stringify(Object.fromEntries(same)).replaceAll(id, "ID"));
}

// It compares two databases, and a Cluster has one.
describe.skipIf(process.env.ERRAND_TEST_CLUSTER).each(stateSchema.options)(
  "a record of an older version that is %s",
  (state) => {
    const moves = MOVE_NAMES.filter((name) => {
      const { from }: Move = MOVES[name];
      return from.includes(state);
    });

    test.each([...moves, "due"] as const)(
      "is moved by %s as a packed one, and is packed then",
      async (name) => {
        const { packed, older } = await openPair(state);
        const [expected, outcome] = [await packed.move(name, packed.id), await older.move(name, older.id)];
        expect(outcome.kind).toBe(expected.kind);
        const after = await fieldsOf(older.redis, older.key);
        expect(comparable(after, older.id)).toEqual(
          comparable(await fieldsOf(packed.redis, packed.key), packed.id),
        );
        const names = await older.redis.hkeys(older.key);
        expect(names).toContain(PACKED);
        expect(names.filter((one) => PACKED_NAMES.some((other) => other === one))).toEqual([]);
      },
    );

    test("is read as a packed one, whole and as a summary", async () => {
      const { older, packed } = await openPair(state);
      const shown = async ({ redis, shards, id, read }: typeof older) => {
        const record = await read(id);
        const [summary] = await readSummaries(redis, shards, [id], { errors: true, previews: true });
        return [JSON.parse(record?.json ?? "{}"), summary].map((one) => comparable(one ?? {}, id));
      };
      const hidden = (one: unknown) => JSON.parse(JSON.stringify(one).replaceAll(/"20\d\d-[^"]*"/g, '"at"'));
      expect(hidden(await shown(older))).toEqual(hidden(await shown(packed)));
    });
  },
);
