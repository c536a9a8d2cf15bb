/**
 * Push notification configs in a walk, over A2A. Limit: receivers accept everything; failures have tests of their own.
 */
import * as fc from "fast-check";
import { expect } from "vitest";
import { isTerminal } from "../../src/schema/delegation.ts";
import { pick, principal, via, who } from "./delegator-steps.ts";
import type { Item, Refusal } from "./item.ts";
import type { Model } from "./model.ts";
import { codeOf } from "./real.ts";
import { hasItems, type Pick, pickItem, type Step, step } from "./step.ts";

const VERSION = "?A2A-Version=1.0";
const pathOf = ({ target, id }: Item) => `/a2a/${target}/rest/tasks/${id}/pushNotificationConfigs`;
const isThere = ({ until }: Item["pushes"][number]): boolean => until === null;
const hasPushes = ({ pushes }: Item): boolean => pushes.some(isThere);

function refuses(model: Model, by: string, item: Item): Refusal | null {
  if (!model.sees(by, item)) return { code: "delegation_not_found" };
  return ["operator", item.delegator].includes(by) ? null : { code: "forbidden" };
}

interface Args {
  readonly via: number;
  readonly pick: Pick;
  readonly by: string;
  readonly id: string;
}

/** A config with an id that exists replaces the old one, and continues where that one was. */
const push = step<Args>({
  name: "push",
  check: hasItems,
  async run(model, real, { via, pick, by, id }) {
    const item = pickItem(model, pick, ({ state }) => !isTerminal(state));
    const caller = principal(by, item);
    const refusal = refuses(model, caller, item);
    const standing = item.pushes.find((one) => one.id === id && isThere(one));
    const path = standing?.path ?? `/${item.id}/${item.pushes.length}`;
    const url = new URL(path, real.receiver.url).href;
    const answer = await real.call(via, caller, "POST", pathOf(item) + VERSION, { id, url });
    expect(refusal ? codeOf(answer) : answer.status).toBe(refusal?.code ?? 201);
    if (!refusal) {
      model.move("push", item);
      const from = isTerminal(item.state) ? item.version : item.version + 1;
      if (!standing) item.pushes.push({ id, path, from, until: null });
    }
    await real.check(item, model);
  },
});

const unpush = step<Args>({
  name: "unpush",
  check: (model) => model.items.some(hasPushes),
  async run(model, real, { via, pick, by, id }) {
    const item = pickItem(model, { ...pick, fitting: true }, hasPushes);
    const caller = principal(by, item);
    const refusal = refuses(model, caller, item);
    const answer = await real.call(via, caller, "DELETE", `${pathOf(item)}/${id}${VERSION}`);
    expect(refusal ? codeOf(answer) : answer.status).toBe(refusal?.code ?? 204);
    const standing = item.pushes.find((one) => one.id === id && isThere(one));
    if (!refusal && standing) standing.until = item.version;
    await real.check(item, model);
  },
});

const args = fc.record({ via, pick, by: who, id: fc.constantFrom("p1", "p2") });

/** The steps, each with its weight. */
export const pushSteps: readonly (readonly [number, fc.Arbitrary<Step>])[] = [
  [4, args.map(push)],
  [1, args.map(unpush)],
];
