/** Which numbers of JSON are accepted, and what happens to the others. */
import { expect, test } from "vitest";
import { parseBody } from "../../src/doors/http/body.ts";
import { ErrandError } from "../../src/schema/errors.ts";
import { parseExact } from "../../src/schema/exact-numbers.ts";

const EXACT = [
  ...[
    "0",
    "-0",
    "0.0",
    "-0.0e5",
    "0e999",
    "1",
    "1.0",
    "1e2",
    "1E2",
    "1e+2",
    "-1.50",
    "100e-2",
    "0.1",
    "0.30000000000000004",
  ],
  ...[
    "9007199254740991",
    "9007199254740992",
    "-9007199254740992",
    "9007199254740994",
    "1e21",
    "1000000000000000000000",
  ],
  ...[
    "1e300",
    "1.7976931348623157e308",
    "5e-324",
    "2.2250738585072014e-308",
    "0.000001",
    "123456789012345.6",
    "1e-290",
  ],
  // As C, C++ and older PHP print doubles (%.17g).
  ...[
    "0.10000000000000001",
    "30.300000000000001",
    "-1.1000000000000001e-07",
    "9.9999999999999992e+22",
    "3.6028797018963968e+16",
    "1.7976931348623157e+308",
    "4.9406564584124654e-324",
    "0.29999999999999999",
  ],
  ...[`1${"0".repeat(22)}`, `0.${"0".repeat(300)}1`, `1.${"0".repeat(400)}`, "3.141592653589793"],
];
const INEXACT = [
  ...[
    "9007199254740993",
    "-9007199254740993",
    "1915883588174806058",
    "18446744073709551616",
    "1152921504606846976",
  ],
  ...[
    "1E400",
    "-1e400",
    "1e309",
    "1e-400",
    "4e-324",
    "2.2250738585072011e-308",
    "0.1000000000000000055511",
    "0.30000000000000002",
    "30.3000000000000011",
    "9007199254740993.0",
    "36028797018963968",
    "1e99999999999999999999",
  ],
  ...[
    "3.14159265358979323846",
    "123456789012345678.5",
    "9007199254740992.5",
    `1${"0".repeat(30)}1`,
    `0.${"1".repeat(40)}`,
  ],
];
const BACKSLASH = "\\";

const issuesOf = (json: string): unknown => {
  try {
    parseBody(Buffer.from(json), "application/json");
    return "accepted";
  } catch (error) {
    if (!(error instanceof ErrandError)) throw error;
    return error.code === "inexact_number" ? error.context.details?.issues : error.code;
  }
};
const at = (...paths: string[]) =>
  paths.map((path) => ({ path, reason: "is a number that loses digits; send it as a text" }));

test("a number is accepted if its double, printed in its shortest form or with 17 digits, is the same decimal value", () => {
  for (const number of EXACT) expect(issuesOf(`{"a":[${number}]}`), number).toBe("accepted");
  for (const number of INEXACT) expect(issuesOf(`{"a":[${number}]}`), number).toEqual(at("a.0"));
});

test("the rule agrees with decimal arithmetic for every number of digits and every exponent", () => {
  for (let digits = 1; digits <= 18; digits += 1) {
    for (const exponent of [-330, -310, -300, -281, -20, -1, 0, 1, 20, 281, 292, 300, 309]) {
      const whole = "7351928461905738462".slice(0, digits);
      const printed = Number(`${whole}e${exponent}`);
      const isSame =
        Number.isFinite(printed) &&
        [printed.toExponential(), printed.toExponential(16)].some((text) => {
          const [mantissa = "", power = "0"] = text.split("e");
          const [head = "", tail = ""] = mantissa.split(".");
          return (
            BigInt(head + tail) * 10n ** BigInt(Math.max(0, Number(power) - tail.length - exponent)) ===
            BigInt(whole) * 10n ** BigInt(Math.max(0, exponent - Number(power) + tail.length))
          );
        });
      expect(issuesOf(`[${whole}e${exponent}]`), `${whole}e${exponent}`).toEqual(
        isSame ? "accepted" : at("0"),
      );
    }
  }
});

test("every such number is named with its path, up to 50 of them", () => {
  expect(issuesOf("9007199254740993")).toEqual(at(""));
  expect(issuesOf(`{"a":{"b":[1,{"c":1e400}],"d":"9007199254740993"},"e":[[],9007199254740993]}`)).toEqual(
    at("a.b.1.c", "e.1"),
  );
  expect(issuesOf(`{ "x${BACKSLASH}"y" : -1e400 , "s":"a${BACKSLASH}${BACKSLASH}","n":\n1e400}`)).toEqual(
    at('x"y', "n"),
  );
  expect(issuesOf(`{"${"k".repeat(300)}":1e400}`)).toEqual(at(`${"k".repeat(100)}…`));
  expect(issuesOf(`[${Array(60).fill("1e400").join(",")}]`)).toHaveLength(50);
});

test("text with numbers in it, and text that is not JSON, are no such numbers", () => {
  expect(issuesOf(`{"task":"{${BACKSLASH}"id${BACKSLASH}":9007199254740993}","9007199254740993":1}`)).toBe(
    "accepted",
  );
  for (const text of [
    "[9007199254740993",
    "[1e400,]",
    "{9007199254740993:1}",
    "[1.2.3e400]",
    "[-]",
    "[01e400]",
  ])
    expect(issuesOf(text), text).toBe("invalid_json");
});

test("JSON that a user gives to a program is read by the same rule", () => {
  expect(parseExact('{"a": 1.0}')).toEqual({ a: 1 });
  expect(() => parseExact('{"a": [1, 9007199254740993]}')).toThrow(
    "a.1 is a number that loses digits; send it as a text",
  );
  expect(() => parseExact("1e400")).toThrow("it is a number that loses digits");
  expect(() => parseExact("{")).toThrow(SyntaxError);
});
