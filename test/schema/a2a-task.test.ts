/** The table of A2A's task states: each member of the SDK's enum, its spellings, and its state of a delegation. */
import { TaskState, taskStateToJSON } from "@a2a-js/sdk";
import { legacyPushNotificationToV1StreamResponse } from "@a2a-js/sdk/compat/v0_3";
import { describe, expect, test } from "vitest";
import {
  A2A_STATES,
  type A2aStateName,
  fromA2aState,
  statesOf,
  toA2aState,
} from "../../src/schema/a2a-task.ts";
import { stateSchema } from "../../src/schema/delegation.ts";

const STATES = Object.keys(A2A_STATES).filter((name): name is A2aStateName => name in A2A_STATES);

describe("the table of task states", () => {
  test("has every member of the SDK's enum, by name and number, and no other", () => {
    const members = Object.entries(TaskState).filter(
      ([name, number]) => typeof number === "number" && name !== "UNRECOGNIZED",
    );
    expect(Object.fromEntries(members)).toEqual(
      Object.fromEntries(STATES.map((name) => [name, A2A_STATES[name].number])),
    );
    for (const name of STATES) expect(taskStateToJSON(A2A_STATES[name].number)).toBe(name);
  });

  test.each(STATES)("spells %s as 0.3 does", (name) => {
    const { v03 } = A2A_STATES[name];
    const body = { kind: "task", id: "t", contextId: "c", status: { state: v03 } };
    const { payload } = legacyPushNotificationToV1StreamResponse(body);
    expect(payload?.$case === "task" && payload.value.status?.state).toBe(A2A_STATES[name].number);
  });

  test.each(STATES)("reads %s in every spelling, and no similar text", (name) => {
    const row = A2A_STATES[name];
    for (const spelling of [name, row.v03, row.number]) {
      expect(fromA2aState(spelling)).toBe(row.means === null ? undefined : row);
    }
    for (const near of [name.toLowerCase(), row.v03.toUpperCase(), String(row.number), [name], `${name} `]) {
      expect(fromA2aState(near)).toBeUndefined();
    }
  });

  test.each(stateSchema.options)("converts %s to A2A and back", (state) => {
    // A2A has no word for a task that waits for its parts.
    const shown = state === "awaiting_children" ? "working" : state;
    expect(fromA2aState(toA2aState(state))?.state).toBe(shown);
    expect(statesOf(shown)).toContain(state);
    expect(STATES.filter((name) => A2A_STATES[name].state === shown)).toHaveLength(1);
  });
});
