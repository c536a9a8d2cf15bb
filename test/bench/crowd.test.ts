/** What the crowd of a benchmark reads and counts. */
import { expect, test } from "vitest";
import { busiestSecond } from "../../bench/busiest-second.ts";
import { StatusLine } from "../../bench/status-line.ts";

test.each([
  [["HTTP/1.1 200 OK\r\n\r\n{}"], true],
  [["HTTP/1.1 200 OK\r\n", "\r\n", '{"leases":[]}'], true],
  [["HTTP/1", ".1 200 OK\r\n\r\n{}"], true],
  [["HTTP/1.1 503 Service Unavailable\r\n\r\n", "HTTP/1.1 200"], false],
  [["HTTP/1.1 20"], false],
  [[], false],
])("a response in the pieces %j is a 200: %j", (pieces, isOk) => {
  const status = new StatusLine();
  for (const piece of pieces) status.add(piece);
  expect(status.isOk).toBe(isOk);
});

test("the busiest second of two processes is one second, not the sum of the busiest of each", () => {
  const early = [0, 10, 20, 5_000];
  const late = [5_100, 5_200, 5_300, 5_400, 9_000];
  expect([early, late].map(busiestSecond)).toEqual([3, 4]);
  expect(busiestSecond([...late, ...early])).toBe(5);
  expect(busiestSecond([])).toBe(0);
});
