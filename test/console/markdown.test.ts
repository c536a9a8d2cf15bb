/** Formatted text stays within limits that do not depend on the machine. */
import { expect, test } from "vitest";
import { MAX, toHtml } from "../../src/console/markdown/to-html.ts";

const elementsOf = (html: string): number => html.match(/<[a-z]/g)?.length ?? 0;

/** The HTML of each text, or the end of the reason why there is none. */
const results = (...texts: string[]): string[] =>
  [...toHtml(texts)].map((one) => ("html" in one ? one.html.trim() : one.why.replace(/^.* because /, "")));

const TOO_LARGE = "it has too many lines, cells or links to be formatted.";
const TOO_DEEP = `it is nested more than ${MAX.depth} levels deep.`;

test("Markdown becomes HTML, and HTML in it text", () => {
  expect(results("# A\n\n**b** <i>", "![x](http://example.com/x.png)", "- [x] c")).toEqual([
    "<h3>A</h3>\n<p><strong>b</strong> &#60;i&#62;</p>",
    "<p>![x](http://example.com/x.png)</p>",
    "<ul>\n<li>☑ c</li>\n</ul>",
  ]);
});

test("what would become too many elements, too deep or too long is refused", () => {
  const row = (cell: string, columns: number) => `|${cell.repeat(columns)}\n`;
  const table = (columns: number, rows: number) =>
    `${row("a|", columns)}${row("-|", columns)}${"b\n".repeat(rows)}`;
  expect(results(table(200, 22_000))).toEqual([TOO_LARGE]);
  expect(results(`> ${table(200, 1000).replaceAll("\n", "\n> ")}`)).toEqual([TOO_LARGE]);
  expect(results("a\n".repeat(20_000))).toEqual([TOO_LARGE]);
  // Every link has the whole address.
  expect(results(`[a]: https://example.com/${"x".repeat(30_000)}\n\n${"[a] ".repeat(1_000)}`)).toEqual([
    TOO_LARGE,
  ]);
  expect(results(">".repeat(5_000))).toEqual([TOO_DEEP]);
  expect(results(`${"> ".repeat(MAX.depth)}a`)).toEqual([TOO_DEEP]);
  expect(results(`${"- ".repeat(MAX.depth)}a`)).toEqual([TOO_DEEP]);
  expect(results("x".repeat(MAX.characters + 1))).toEqual([
    `more than ${MAX.characters.toLocaleString("en")} characters are not formatted.`,
  ]);
  const [fits = ""] = results(table(20, 200));
  expect(elementsOf(fits)).toBeLessThanOrEqual(MAX.elements);
  expect(fits.endsWith("</table>")).toBe(true);
});

test("the limits are for all texts of a message together, and a refused text costs nothing", () => {
  const long = "x".repeat(0.6 * MAX.characters);
  expect(results(long, long, "*a*").map((one) => one.slice(0, 9))).toEqual([
    "<p>xxxxxx",
    "more than",
    "<p><em>a<",
  ]);
  const lines = "a\n".repeat(0.6 * MAX.elements);
  expect(results(lines, lines, "*a*").map((one) => one.slice(0, 9))).toEqual([
    "<p>a<br>a",
    "it has to",
    "<p><em>a<",
  ]);
  const shown = results(...Array.from({ length: 1_000 }, () => "*a*")).filter((one) => one !== TOO_LARGE);
  expect(shown.length).toBeLessThan(MAX.elements / 20);
});
