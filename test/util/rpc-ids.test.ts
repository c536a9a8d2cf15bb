/** Ids of JSON-RPC messages survive parsing and printing. */
import { expect, test } from "vitest";
import { hasWrapped, isWrappedId, rawIdOf, unwrapIds, wrapIds } from "../../src/util/rpc-ids.ts";

const KEPT = ["1", "0", "-7", "9007199254740991", '"a"', '"9007199254740993"', "null", '"é😀"', '""'];
const WRAPPED = [
  ...[
    "9007199254740993",
    "-9007199254740993",
    "1732523456789012345",
    "1.5",
    "1.0",
    "1e2",
    "1E400",
    "-0",
    "0.1",
  ],
  ...['"\\u0061"', '"a\\/b"', '"errand-id:1"', '"errand-id:\\"x\\""'],
];

/** What a program does with a message: parse it, and print an answer with its id last. */
const answered = (message: string): string => {
  const { id }: { id: unknown } = JSON.parse(wrapIds(message));
  return unwrapIds(JSON.stringify({ result: { id: "errand-id:7", x: [id, { id }] }, jsonrpc: "2.0", id }));
};

test("an id comes back as it was sent", () => {
  for (const id of [...KEPT, ...WRAPPED]) {
    for (const message of [
      `{"jsonrpc":"2.0","id":${id},"method":"m","params":{"id":3}}`,
      `\n{ "method" : "m}{\\"id\\":4" , "id" : 1 , "params":[{"id":"x"},"]"], "i\\u0064" :\t${id} }\n`,
    ]) {
      expect(answered(message).endsWith(`"id":${id}}`), message).toBe(true);
    }
  }
});

test("an id that a parser keeps is left alone, and so is what is no message", () => {
  for (const id of KEPT) expect(wrapIds(`{"id":${id}}`)).toBe(`{"id":${id}}`);
  for (const text of [
    ...[
      "",
      "[]",
      '[{"x":1.5}]',
      "[[1.5]]",
      '[{"id":1',
      "[1.5,",
      "{",
      '{"id"',
      '{"id":',
      '{"id":1.5.5}',
      '{"id":01}',
      '{"id":{"id":1.5}}',
      '{"id":true}',
    ],
    ...['{"params":{"id":1.5}}', '{"id":"\\ud800"}', `{"id":${"9".repeat(2_000)}}`, '{"id":1.5', '{"id":"a'],
  ]) {
    const wrapped = wrapIds(text);
    if (text === '{"id":1.5') expect(() => JSON.parse(wrapped)).toThrow();
    else expect(wrapped).toBe(text);
  }
});

test("different ids stay different, and a cancel names the same one", () => {
  const wrapped = WRAPPED.map((id) => wrapIds(`{"id":${id}}`));
  expect(new Set(wrapped).size).toBe(WRAPPED.length);
  for (const id of WRAPPED) {
    const request: { id: unknown } = JSON.parse(wrapIds(`{"id":${id},"method":"m"}`));
    const cancel: { params: { requestId: unknown } } = JSON.parse(
      wrapIds(`{"params":{"requestId":${id},"reason":"x"},"method":"notifications/cancelled"}`),
    );
    expect(cancel.params.requestId).toBe(request.id);
    expect(isWrappedId(request.id) && rawIdOf(request.id)).toBe(id);
    const call = `{"params":{"requestId":${id}},"method":"tools/call"}`;
    expect(wrapIds(call)).toBe(call);
  }
});

test("the ids of a batch come back, and so do tokens for progress", () => {
  const batch = WRAPPED.map((id) => ` {"id":${id},"method":"m","params":{"_meta":{"progressToken":${id}}}}`);
  const parsed: { id: unknown; params: { _meta: { progressToken: unknown } } }[] = JSON.parse(
    wrapIds(`[${batch.join(",")} , {"id":${"1.5"}, "result":{}}]`),
  );
  expect(parsed.pop()?.id).toBe("errand-id:1.5");
  expect(hasWrapped(parsed)).toBe(true);
  const answers = parsed.map(({ id }) => ({ jsonrpc: "2.0", id, result: { id } }));
  const ids = WRAPPED.map((id) => `,"id":${id},`);
  expect(ids.filter((id) => !unwrapIds(JSON.stringify(answers)).includes(id))).toEqual([]);
  for (const [at, id] of WRAPPED.entries()) {
    const params = { progressToken: parsed[at]?.params._meta.progressToken, progress: 1 };
    const note = unwrapIds(JSON.stringify({ method: "notifications/progress", params }));
    expect(note).toContain(`"progressToken":${id},`);
    expect(hasWrapped({ id: 1, params: parsed[at]?.params })).toBe(true);
  }
  expect([hasWrapped([{ id: 1 }]), hasWrapped(null), hasWrapped({ params: null })]).toEqual([
    false,
    false,
    false,
  ]);
});

test("of a batch that is too large for every API, only the first ids are wrapped", () => {
  const batch = `[${Array(50_000).fill('{"id":1.5,"method":"m"}').join(",")}]`;
  expect(wrapIds(batch).length).toBe(batch.length + 1_000 * '"errand-id:"'.length);
  expect(unwrapIds(wrapIds(batch))).toBe(batch);
});

test("a long message costs a scan of its text", () => {
  const deep = `${"[".repeat(500_000)}${"]".repeat(500_000)}`;
  const message = `{"params":${deep},"many":${JSON.stringify('\\"'.repeat(100_000))},"id":1.5}`;
  expect(wrapIds(message).endsWith('"id":"errand-id:1.5"}')).toBe(true);
});
