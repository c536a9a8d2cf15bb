/** What the console keeps of what comes and goes while a page is open for hours. */
import { expect, test } from "vitest";
import { keepPlaces, SPARE } from "../../src/console/ui/steady-rows.ts";

const same = (item: string) => item;

test("a list in use appends a bounded number of rows, however many come and go; the others wait", () => {
  let drawn: readonly string[] = ["a", "b"];
  let waiting = 0;
  for (let n = 0; n < 1_000; n += 1)
    ({ rows: drawn, waiting } = keepPlaces(drawn, [`${n}`, `${n + 1}`], same, () => true));
  expect(drawn.slice(0, 4)).toEqual(["a", "b", "0", "1"]);
  expect(drawn).toHaveLength(2 + SPARE);
  expect(waiting).toBe(2);
});
