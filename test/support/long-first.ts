/**
 * Starts the test files that take longest first; the others follow by size, as usual. If a long one came last, the other
 * workers would have nothing to do. Limit: the list is written by hand, from the times that a run prints.
 */
import { BaseSequencer, type TestSpecification } from "vitest/node";

const LONG = ["bench/bench", "faults/workers-killed", "model/walk", "chaos/chaos", "flows/every-api"];

export class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const bySize = await super.sort(files);
    const rank = ({ moduleId }: TestSpecification): number => {
      const place = LONG.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`));
      return place === -1 ? LONG.length : place;
    };
    return bySize.sort((a, b) => rank(a) - rank(b));
  }
}
