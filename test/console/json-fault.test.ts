/** `jsonFault`: where a text stops being JSON, in the same words in every browser. */
import { expect, test } from "vitest";
import { jsonFault } from "../../src/console/ui/json-fault.ts";

const NO_NAME = "a name in double quotes is missing";
const NO_VALUE = "a value is missing; text needs double quotes";
const BROKEN = "this text has no closing double quote, or a \\ that JSON does not know";

test("each fault has its line, its column and a reason", () => {
  const faults: Record<string, string> = {
    "": `1:1 ${NO_VALUE}`,
    hello: `1:1 ${NO_VALUE}`,
    "{ not JSON": `1:3 ${NO_NAME}`,
    '{"a":1,}': `1:8 ${NO_NAME}`,
    '{"a":1 "b":2}': "1:8 a comma or } is missing",
    '{\n  "a": [1, 2\n}': "3:1 a comma or ] is missing",
    '{"a" 1}': "1:6 a colon is missing",
    "[1,]": `1:4 ${NO_VALUE}`,
    '{\n  "path": "/tmp",\n  force: false\n}': `3:3 ${NO_NAME}`,
    '{"a":"one\nline"}': `1:6 ${BROKEN}`,
    '["\\q"]': `1:2 ${BROKEN}`,
    '{"a":{"b":[1,{"c":-2.5e3}]}} x': "1:30 the value ends before this",
    '["\u0001"]': `1:2 ${BROKEN}`,
  };
  const found = Object.keys(faults).map((text) => {
    const fault = jsonFault(text);
    return [text, fault && `${fault.line}:${fault.column} ${fault.why}`];
  });
  expect(Object.fromEntries(found)).toEqual(faults);
});

test("JSON has no fault", () => {
  const texts = ['{"a":[true,null,1e9,"\\u00e4\u007f"]}', "7", " [ ] ", "{}"];
  expect(texts.map(jsonFault)).toEqual([null, null, null, null]);
});
